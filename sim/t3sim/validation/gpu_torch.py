"""A CUDA GPU through PyTorch: GEMMs on one stream, copies to and from the host, by the copy engines, on two others."""

import importlib
import platform
import subprocess
import time
from collections import deque
from typing import Any

from .gpu_measure import Sample
from .gpu_record import DeviceFacts

BLOCK_BYTES = 1 << 20
"""Of one copy."""
IN_FLIGHT = 4
"""Most blocks of a direction that are under way."""
CACHES = 3
"""Operands go round in so many times the cache that each GEMM reads its own from memory."""
_QUERY = ("driver_version", "clocks.sm", "clocks.mem")
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
    """A :class:`~.gpu_measure.Device`; ``torch`` is the module."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._compute = torch.cuda.Stream()
        self._copies = [_Copies(torch, to_host=True), _Copies(torch, to_host=False)]
        self._shape: tuple[int, int, int] | None = None
        self._operands: list[tuple[Any, Any, Any]] = []

    def facts(self) -> DeviceFacts:
        """What PyTorch and nvidia-smi say. Raises ValueError if the latter fails."""
        torch = self._torch
        properties = torch.cuda.get_device_properties(0)
        driver, clock, memory_clock = _query(str(properties.uuid))
        return DeviceFacts(
            name=properties.name,
            driver=driver,
            clock_mhz=float(clock),
            memory_clock_mhz=float(memory_clock),
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
        """As :class:`~.gpu_measure.Device` says; times are the GPU's own, by events on the stream of the GEMMs."""
        torch, operands = self._torch, self._operands_of(m, n, k)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        with torch.cuda.stream(self._compute):
            start.record()
            for number in range(gemms):
                a, b, out = operands[number % len(operands)]
                torch.mm(a, b, out=out)
            end.record()
        blocks = self._copy_until(end, copies_gb_s)
        torch.cuda.synchronize()
        seconds = start.elapsed_time(end) / 1e3
        read, written = (count * BLOCK_BYTES / seconds / 1e9 for count in blocks)
        return Sample(us=seconds / gemms * 1e6, read_gb_s=read, written_gb_s=written)

    def _operands_of(self, m: int, n: int, k: int) -> list[tuple[Any, Any, Any]]:
        """Inputs and outputs in the memory of the GPU: as many as fill its cache :data:`CACHES` times, at least two."""
        if self._shape != (m, n, k):
            self._operands.clear()
            torch = self._torch
            size = 2 * (m * k + k * n + m * n)
            count = max(2, -(-CACHES * torch.cuda.get_device_properties(0).L2_cache_size // size))
            options = {"device": "cuda", "dtype": torch.float16}
            self._operands = [
                (torch.randn(m, k, **options), torch.randn(k, n, **options), torch.empty(m, n, **options))
                for _ in range(count)
            ]
            self._shape = (m, n, k)
        return self._operands

    def _copy_until(self, end: Any, gb_s: float) -> list[int]:
        """Copies blocks at that rate until the event has come: how many were done by then, to the host and from it."""
        for copies in self._copies:
            copies.begin()
        begin = time.perf_counter()
        while not end.query():
            due = gb_s * 1e9 * (time.perf_counter() - begin)
            for copies in self._copies:
                copies.advance(due)
        return [copies.done() for copies in self._copies]


class _Copies:
    """Copies of one direction, on a stream of their own, between a block of pinned host memory and one of the GPU's."""

    def __init__(self, torch: Any, *, to_host: bool) -> None:
        self._torch = torch
        self._stream = torch.cuda.Stream()
        host = torch.empty(BLOCK_BYTES, dtype=torch.uint8, pin_memory=True)
        device = torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cuda")
        self._target, self._source = (host, device) if to_host else (device, host)
        self.begin()

    def begin(self) -> None:
        """Counts from here."""
        self._under_way: deque[Any] = deque()
        self._started = 0

    def advance(self, due: float) -> None:
        """Starts the next block if fewer than ``due`` bytes were started and few are under way."""
        under_way = len(self._under_way) - sum(event.query() for event in self._under_way)
        if self._started * BLOCK_BYTES >= due or under_way >= IN_FLIGHT:
            return
        while len(self._under_way) > IN_FLIGHT:
            self._under_way.popleft()
        event = self._torch.cuda.Event()
        with self._torch.cuda.stream(self._stream):
            self._target.copy_(self._source, non_blocking=True)
            event.record()
        self._under_way.append(event)
        self._started += 1

    def done(self) -> int:
        """Blocks that are there."""
        return self._started - sum(not event.query() for event in self._under_way)


def _query(uuid: str) -> list[str]:
    """Driver version and clocks of the GPU, as nvidia-smi prints them."""
    command = ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits", f"--id=GPU-{uuid}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise ValueError(f"nvidia-smi, which knows driver and clocks, failed ({error}): put it on the PATH") from error
    return [value.strip() for value in done.stdout.strip().split(",")]
