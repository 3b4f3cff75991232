"""As much of PyTorch as :mod:`t3sim.validation.gpu_torch` uses, on a GPU that exists in a count of questions.

Every question whether an event has come takes a tick. A GEMM takes :data:`GEMM_TICKS`, a copy :data:`COPY_TICKS` on its
stream; a tick is a microsecond.
"""

from contextlib import contextmanager
from types import SimpleNamespace

GEMM_TICKS, COPY_TICKS = 400, 5


class FakeTorch:
    """The module. ``multiplied``: the operands of each GEMM; ``copied``: (to, from) of each copy."""

    __version__ = "9.9"
    float16, uint8 = "float16", "uint8"
    version = SimpleNamespace(cuda="0.1")

    def __init__(self, l2_bytes: int = 1 << 20) -> None:
        self.now = 0
        self.ends: dict[object, int] = {}
        self.current: object = None
        self.multiplied: list[tuple] = []
        self.copied: list[tuple[str, str]] = []
        properties = SimpleNamespace(
            name="Fake", uuid="12-34", multi_processor_count=4, L2_cache_size=l2_bytes, total_memory=1 << 30
        )
        self.cuda = SimpleNamespace(
            is_available=lambda: True, get_device_properties=lambda number: properties, Stream=object,
            Event=lambda **options: _Event(self), stream=self.stream, synchronize=self.synchronize,
        )  # fmt: skip

    @contextmanager
    def stream(self, stream):
        self.current = stream
        yield
        self.current = None

    def work(self, ticks: int) -> None:
        """Adds work to the current stream."""
        self.ends[self.current] = max(self.now, self.ends.get(self.current, 0)) + ticks

    def synchronize(self) -> None:
        self.now = max([self.now, *self.ends.values()])

    def mm(self, a, b, out):
        self.multiplied.append((a, b, out))
        self.work(GEMM_TICKS)

    def empty(self, *shape, dtype, device="cpu", pin_memory=False):
        return _Tensor(self, shape, device)

    def randn(self, *shape, dtype, device):
        assert dtype == self.float16
        return _Tensor(self, shape, device)


class _Tensor:
    def __init__(self, torch, shape, device):
        self.torch, self.shape, self.device = torch, shape, device

    def copy_(self, source, *, non_blocking):
        assert non_blocking and self.torch.current is not None
        self.torch.copied.append((self.device, source.device))
        self.torch.work(COPY_TICKS)


class _Event:
    def __init__(self, torch):
        self.torch, self.at = torch, 0

    def record(self):
        self.at = max(self.torch.now, self.torch.ends.get(self.torch.current, 0))

    def query(self):
        self.torch.now += 1
        return self.torch.now >= self.at

    def elapsed_time(self, other):
        return (other.at - self.at) / 1e3
