"""A CUDA GPU through PyTorch: GEMMs on one stream, copies to and from the host on two others."""

import importlib
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from statistics import mean
from typing import Any

from .gpu_copies import CACHES, Copies
from .gpu_measure import Sample
from .gpu_record import DeviceFacts

CLOCK_SECONDS = 0.005
"""From one reading of the clock to the next: a reading takes a tenth of a millisecond, in which no copy starts."""
_REMEDY = "run on a computer with a CUDA GPU, or compare what was measured on one with --from FILE and --machine"


def open_device() -> "TorchDevice":
    """The first CUDA GPU. Raises ValueError with the remedy if there is no PyTorch, or no GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ValueError(
            f"measuring a GPU needs PyTorch, which does not import ({error}): pip install 'opent3[gpu]', and {_REMEDY}"
        ) from error
    if not torch.cuda.is_available():
        raise ValueError(f"PyTorch {torch.__version__} finds no CUDA GPU: {_REMEDY}")
    return TorchDevice(torch)


class TorchDevice:
    """A :class:`~.gpu_measure.Device`; ``torch`` is the module.

    Raises ValueError if the GPU's memory has no room for the blocks of the copies, or its driver does not know it.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._compute = torch.cuda.Stream()
        properties = torch.cuda.get_device_properties(0)
        self._driver = _Driver(str(properties.uuid))
        self._cache_bytes = properties.L2_cache_size
        with self._room_for("the blocks that are copied"):
            self._copies = [Copies(torch, self._cache_bytes, to_host=to_host) for to_host in (True, False)]
        self._shape: tuple[int, int, int, int] | None = None
        self._operands: list[tuple[Any, Any, Any]] = []
        self._gemms: Any = None

    def facts(self) -> DeviceFacts:
        """What PyTorch and the driver say."""
        torch = self._torch
        properties = torch.cuda.get_device_properties(0)
        return DeviceFacts(
            name=properties.name,
            driver=self._driver.version,
            memory_clock_mhz=self._driver.memory_clock_mhz(),
            multiprocessors=properties.multi_processor_count,
            l2_bytes=properties.L2_cache_size,
            memory_bytes=properties.total_memory,
            versions={
                "python": platform.python_version(),
                "torch": str(torch.__version__),
                "cuda": str(torch.version.cuda),
            },
        )

    def sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        """As :class:`~.gpu_measure.Device` says; times are the GPU's own, by events on the stream of the GEMMs.

        Raises ValueError if the GPU's memory has no room for the GEMM, or its driver tells no clock any more.
        """
        with self._room_for(f"the GEMM {m} x {n} x {k}"):
            return self._sample(m, n, k, gemms=gemms, copies_gb_s=copies_gb_s)

    @contextmanager
    def _room_for(self, what: str) -> Iterator[None]:
        """Raises ValueError if the GPU's memory has no room for what is allocated in the block."""
        try:
            yield
        except self._torch.cuda.OutOfMemoryError as error:
            raise ValueError(
                f"the GPU's memory has no room for {what} ({error}): end other programs that use the GPU, or take one "
                "with more memory"
            ) from error

    def _sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        torch = self._torch
        self._prepare(m, n, k, gemms)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        with torch.cuda.stream(self._compute):
            start.record()
            self._gemms.replay()
            end.record()
        copied, clock = self._copy_until(end, copies_gb_s)
        torch.cuda.synchronize()
        seconds = start.elapsed_time(end) / 1e3
        read, written = (count / seconds / 1e9 for count in copied)
        return Sample(us=seconds / gemms * 1e6, clock_mhz=clock, read_gb_s=read, written_gb_s=written)

    def _prepare(self, m: int, n: int, k: int, gemms: int) -> None:
        """Puts inputs and outputs into the GPU's memory, as many as fill its cache :data:`CACHES` times, at least two,
        and all GEMMs of a sample into one graph. Launched one by one, with copies in between, GEMMs of less than 150 us
        would wait for their launch."""
        if self._shape == (m, n, k, gemms):
            return
        self._gemms = None
        self._operands.clear()
        torch = self._torch
        size = 2 * (m * k + k * n + m * n)
        count = max(2, ceil(CACHES * self._cache_bytes / size))
        options = {"device": "cuda", "dtype": torch.float16}
        self._operands = [
            (torch.randn(m, k, **options), torch.randn(k, n, **options), torch.empty(m, n, **options))
            for _ in range(count)
        ]
        torch.cuda.synchronize()
        with torch.cuda.stream(self._compute):
            self._multiply(count)  # a kernel is chosen, and its workspace allocated, outside the graph
        torch.cuda.synchronize()
        self._gemms = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._gemms, stream=self._compute):
            self._multiply(gemms)
        self._shape = (m, n, k, gemms)

    def _multiply(self, gemms: int) -> None:
        for number in range(gemms):
            a, b, out = self._operands[number % len(self._operands)]
            self._torch.mm(a, b, out=out)

    def _copy_until(self, end: Any, gb_s: float) -> tuple[list[int], float]:
        """Copies blocks at that rate until the event has come: bytes that were read and written, and the mean clock."""
        for copies in self._copies:
            copies.begin()
        begin = time.perf_counter()
        clocks: list[float] = []
        while not end.query():
            seconds = time.perf_counter() - begin
            for copies in self._copies:
                copies.advance(gb_s * 1e9 * seconds)
            if seconds >= CLOCK_SECONDS * (len(clocks) + 1):
                clocks.append(self._driver.clock_mhz())
        return [copies.done_bytes() for copies in self._copies], mean(clocks or [self._driver.clock_mhz()])


class _Driver:
    """What NVIDIA's driver knows of the GPU with that number. Raises ValueError if it cannot be asked."""

    def __init__(self, uuid: str) -> None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise ValueError(
                f"the clocks of a GPU come from its driver, through nvidia-ml-py, which does not import ({error}): "
                "pip install 'opent3[gpu]'"
            ) from error
        try:
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
            self.version = str(nvml.nvmlSystemGetDriverVersion())
            self._nvml = nvml
            self.clock_mhz(), self.memory_clock_mhz()  # a driver that does not tell is refused before a measurement
        except nvml.NVMLError as error:
            raise ValueError(f"the driver does not say what GPU {uuid} is ({error}): {_REMEDY}") from error

    def clock_mhz(self) -> float:
        """Of the CUs, now."""
        return self._clock_mhz(self._nvml.NVML_CLOCK_SM)

    def memory_clock_mhz(self) -> float:
        """Of the memory, now."""
        return self._clock_mhz(self._nvml.NVML_CLOCK_MEM)

    def _clock_mhz(self, kind: int) -> float:
        try:
            return float(self._nvml.nvmlDeviceGetClockInfo(self._handle, kind))
        except self._nvml.NVMLError as error:
            raise ValueError(f"the driver does not tell the clocks of this GPU ({error}): {_REMEDY}") from error
