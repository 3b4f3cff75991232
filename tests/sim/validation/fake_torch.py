"""As much of PyTorch, and of pynvml, as measuring uses, on a GPU that exists in a count of questions.

Every question whether an event has come takes a tick. A GEMM takes :data:`GEMM_TICKS`, a copy :data:`COPY_TICKS` on its
stream; a tick is a microsecond.
"""

from contextlib import contextmanager
from types import SimpleNamespace

GEMM_TICKS, LAUNCH_TICKS, COPY_TICKS = 400, 100, 20
QUEUED = 512
L2_BYTES = 50 << 20


class _OutOfMemoryError(RuntimeError):
    """As PyTorch's."""


class FakeTorch:
    """The module. ``multiplied``: the operands of each GEMM; ``copied``: (to, from) of each copy, as devices, and the
    numbers of their blocks."""

    __version__ = "9.9"
    float16, uint8 = "float16", "uint8"
    version = SimpleNamespace(cuda="0.1")

    def __init__(self) -> None:
        self.now = 0
        self.ends: dict[object, int] = {}
        self.current: object = None
        self.capturing: _Graph | None = None
        self.multiplied: list[tuple] = []
        self.copied: list[tuple[str, str, int, int]] = []
        properties = SimpleNamespace(
            name="Fake", uuid="12-34", multi_processor_count=4, L2_cache_size=L2_BYTES, total_memory=1 << 30
        )
        self.cuda = SimpleNamespace(
            is_available=lambda: True, get_device_properties=lambda number: properties, Stream=_Stream,
            Event=lambda **options: _Event(self), stream=self.stream, synchronize=self.synchronize,
            CUDAGraph=lambda: _Graph(self), graph=self.capture, OutOfMemoryError=_OutOfMemoryError,
        )  # fmt: skip

    @contextmanager
    def stream(self, stream):
        self.current = stream
        yield
        self.current = None

    @contextmanager
    def capture(self, graph, stream):
        assert stream is not None
        self.capturing = graph
        yield
        self.capturing = None

    def work(self, ticks: int) -> None:
        """Adds work to the current stream."""
        self.ends[self.current] = max(self.now, self.ends.get(self.current, 0)) + ticks

    def synchronize(self) -> None:
        self.now = max([self.now, *self.ends.values()])

    def mm(self, a, b, out):
        """A launch takes the host LAUNCH_TICKS, and the GPU begins meanwhile."""
        if self.capturing is not None:
            self.capturing.gemms.append((a, b, out))
            return
        self.now += LAUNCH_TICKS
        self.multiply(a, b, out)

    def multiply(self, a, b, out):
        self.multiplied.append((a, b, out))
        self.work(GEMM_TICKS)

    def empty(self, *shape, dtype, device="cpu", pin_memory=False):
        assert pin_memory == (device == "cpu"), "copies of other memory of the host wait for each other"
        return _Tensor(self, shape, device)

    def randn(self, *shape, dtype, device):
        assert dtype == self.float16
        return _Tensor(self, shape, device)


class _Graph:
    """GEMMs that one launch starts."""

    def __init__(self, torch):
        self.torch, self.gemms = torch, []

    def replay(self):
        """Keeps the host waiting until no more GEMMs than QUEUED are left."""
        assert self.torch.capturing is None
        for operands in self.gemms:
            self.torch.multiply(*operands)
        self.torch.now += max(0, len(self.gemms) - QUEUED) * GEMM_TICKS


class _Stream:
    """A place where work follows work."""


class _Tensor:
    """A tensor, or block ``number`` of one."""

    def __init__(self, torch, shape, device, number=0):
        self.torch, self.shape, self.device, self.number = torch, shape, device, number

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, number):
        assert 0 <= number < len(self)
        return _Tensor(self.torch, self.shape[1:], self.device, number)

    def copy_(self, source, *, non_blocking):
        assert non_blocking and self.torch.current is not None and self.shape == source.shape
        self.torch.copied.append((self.device, source.device, self.number, source.number))
        self.torch.work(COPY_TICKS)


class _Event:
    def __init__(self, torch):
        self.torch, self.at = torch, 0

    def record(self, stream=None):
        self.at = max(self.torch.now, self.torch.ends.get(stream or self.torch.current, 0))

    def query(self):
        self.torch.now += 1
        return self.torch.now >= self.at

    def elapsed_time(self, other):
        return (other.at - self.at) / 1e3


class FakeNvml:
    """The module pynvml, of one GPU."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        """What the module raises."""

    def nvmlInit(self):
        """Nothing to begin."""

    def nvmlSystemGetDriverVersion(self):
        return "535.1"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid != "GPU-12-34":
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetClockInfo(self, handle, kind):
        assert handle == "GPU-12-34"
        return {self.NVML_CLOCK_SM: 1410, self.NVML_CLOCK_MEM: 1215}[kind]
