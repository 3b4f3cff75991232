"""Watches a running system from outside, between the windows in which its GPUs advance, and changes nothing in it.

What a GPU sends stands in its packet ring, with the cycle of its arrival, until the neighbour has taken it, which is at
least a window later: so every packet is seen, and nothing here is a sample but what :mod:`.events` calls one. A DMA
command stands in the ring of commands, and its trigger's cycle in the list of those that fired.
"""

import numpy as np
from numpy.typing import NDArray
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.collective.ring import ring_next, ring_order
from t3sim.engine import state
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.mover import LAUNCHING, MOVING

from .events import GpuEvents, KernelStep, RunEvents, StepKind, Transfer, TransferKind, Trigger
from .observe import queues
from .plan import RunPlan
from .system import System

Key = tuple[TransferKind, int]
"""Which packets are one transfer: the kind, and the number of the command, of the part of the output, or of the chunk.
A DMA command that was not seen has -1 - chunk."""
STORES: TransferKind = "stores"


class Recorder:
    """Collects the events of ``system``: call :meth:`observe` after every window, :meth:`events` at the end."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.watches = [_Watch(system.plan, number, gpu) for number, gpu in enumerate(system.gpus)]

    def observe(self, until: int) -> None:
        """Note what the window that ended at cycle ``until`` has brought."""
        for watch in self.watches:
            watch.observe(until)

    def events(self) -> RunEvents:
        """All of the finished run."""
        gpus, plan = self.system.gpus, self.system.plan
        link = gpus[0].link
        width = int(gpus[0].time["bin_cycles"])
        last = max(int(gpu.time["finish_cycle"]) for gpu in gpus)
        used = min(state.BINS, -(-last // width))
        return RunEvents(
            policy=plan.request.policy,
            ring=plan.gpus,
            clock_mhz=int(link["memory_mhz"]),
            bin_cycles=width,
            look_cycles=int(link["latency_cycles"]),
            mirror=plan.request.mirror,
            gpus=[watch.events(used) for watch in self.watches],
        )


class _Watch:
    """One GPU of a :class:`Recorder`."""

    def __init__(self, plan: RunPlan, number: int, gpu: GpuState) -> None:
        self.plan, self.number, self.gpu = plan, number, gpu
        self.remote = ring_order(number, plan.gpus)[0]
        self.sent = 0  # packets of the ring that were looked at
        self.newest = -1  # number of the last packet that was sent for the first time
        self.tail = 0  # DMA commands that were looked at
        self.tiles: list[tuple[int, int, int, int] | None] = []
        self.command_at = np.full(gpu.part_at.shape, -1, np.int64)
        self.open: dict[Key, Transfer] = {}
        self.closed: list[Transfer] = []
        self.launches: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.resident = [(0, 0)]

    def observe(self, until: int) -> None:
        """What the window that ended at ``until`` has brought."""
        self._commands()
        self._packets()
        self._kernels(until)
        resident = int(self.gpu.gemm["resident"])
        if self.resident[-1][1] != resident:
            self.resident.append((until, resident))

    def _commands(self) -> None:
        """The rectangle of every command that has come, unless the ring has wrapped round over it."""
        ring, tail = self.gpu.commands, int(self.gpu.dma["command_tail"])
        for number in range(self.tail, tail):
            if number < tail - len(ring):
                self.tiles.append(None)
                continue
            row0, row1, col0, col1 = (int(ring[name][number % len(ring)]) for name in ("row0", "row1", "col0", "col1"))
            self.tiles.append((row0, row1, col0, col1))
            self.command_at[row0:row1, col0:col1] = number
        self.tail = tail

    def _packets(self) -> None:
        """Add every packet that was sent to its transfer."""
        ring, head = self.gpu.out, int(self.gpu.link["out_head"])
        if head == self.sent:
            return
        packets = ring[np.arange(self.sent, head) % len(ring)]
        self.sent = head
        sequence = packets["sequence"]
        before = np.maximum.accumulate(np.concatenate([[self.newest], sequence[:-1]]))
        packets = packets[sequence > before]  # the others are sent again
        self.newest = max(self.newest, int(sequence.max()))
        sort, detail = self._keys(packets)
        for key in dict.fromkeys(zip(sort.tolist(), detail.tolist(), strict=True)):
            self._add((_KINDS[key[0]], key[1]), packets[(sort == key[0]) & (detail == key[1])])

    def _keys(self, packets: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The transfer of each packet: index into ``_KINDS``, and number as in ``Key``."""
        plan = self.plan
        row, col, chunk = packets["row"], packets["col"], packets["chunk"].astype(np.int64)
        part = self.gpu.part_at[row, col]
        command = self.command_at[row, col]
        if plan.request.mirror:  # the ring holds what the neighbour would send: tiles of the chunk behind the one sent
            chunk = (chunk - 1) % plan.gpus
            part = np.searchsorted(self.gpu.part_chunk, chunk)
            command = np.full_like(part, -1)
        command = np.where(command < 0, -1 - chunk, command)
        tracked = np.where(chunk == self.remote, _KINDS.index(STORES), _KINDS.index("dma"))
        by_kernel = np.where(
            packets["cause"] == state.AG_WRITE, _KINDS.index("all_gather"), _KINDS.index("reduce_scatter")
        )
        sort = np.where(packets["tagged"] != 0, tracked, by_kernel)
        return sort, np.choose(sort, [command, chunk, part, part])

    def _add(self, key: Key, packets: NDArray[np.void]) -> None:
        """Packets of one window to the transfer that they belong to."""
        link = self.gpu.link
        arrived, lines = packets["arrival_cycle"], packets["lines"]
        sent = arrived - int(link["latency_cycles"])
        first_bytes = int(lines[0]) * LINE_BYTES + int(link["header_bytes"])
        took = -(
            -first_bytes * int(link["byte_ps_num"]) * int(link["memory_mhz"]) // (int(link["byte_ps_den"]) * 1_000_000)
        )
        first = max(0, int(sent[0]) - took)
        transfer = self.open.get(key)
        if transfer is None or (key[0] == STORES and first - transfer.last_sent > int(link["latency_cycles"])):
            if transfer is not None:
                self.closed.append(transfer)
            kind, number = key
            transfer = self.open[key] = Transfer(
                kind=kind,
                chunk=self._chunk(key),
                command=number if kind == "dma" and number >= 0 else None,
                first_sent=first,
                last_sent=first,
                first_arrived=int(arrived[0]),
                last_arrived=int(arrived[0]),
            )
        transfer.packets += len(packets)
        transfer.lines += int(lines.sum())
        transfer.last_sent = int(sent[-1])
        transfer.last_arrived = int(arrived[-1])

    def _chunk(self, key: Key) -> int:
        """The chunk that a transfer is of."""
        kind, number = key
        if kind == "dma":
            return int(self.gpu.fired[number, 0]) if number >= 0 else -1 - number
        return number if kind == STORES else int(self.gpu.part_chunk[number])

    def _kernels(self, until: int) -> None:
        """When the present step was launched, and which ones have ended."""
        kernel = self.gpu.kernel
        step = int(kernel["step"])
        if int(kernel["state"]) in (LAUNCHING, MOVING):
            self.launches.setdefault(step, int(kernel["start_cycle"]))
        for number in range(len(self.ended), step):
            self.ended[number] = until

    def events(self, bins: int) -> GpuEvents:
        """Everything, with the first ``bins`` bins."""
        gpu, gemm, comm = self.gpu, self.gpu.gemm, self.gpu.comm
        spans = {
            "gemm": (int(gemm["start_cycle"]), int(gemm["end_cycle"])),
            "reduce_scatter": (int(comm["rs_first_cycle"]), int(comm["rs_last_cycle"])),
            "all_gather": (int(comm["ag_first_cycle"]), int(comm["ag_last_cycle"])),
        }
        transfers = [*self.closed, *self.open.values()]
        return GpuEvents(
            number=self.number,
            neighbour=0 if self.plan.request.mirror else ring_next(self.number, self.plan.gpus),
            bins=gpu.bins[:, :bins].copy(),
            queues=queues(gpu, bins),
            cus=int(gpu.gemm["cus"]),
            clocks=int(gpu.gemm["clock_num"]) / int(gpu.gemm["clock_den"]),
            spans={name: span for name, span in spans.items() if span[1] > span[0]},
            stages=_intervals(gpu.stages),
            exposed=_intervals(gpu.exposed[: int(gpu.time["exposed_count"])]),
            triggers=self._triggers(),
            transfers=sorted(transfers, key=lambda transfer: (transfer.first_sent, transfer.kind, transfer.chunk)),
            steps=[self._step(number) for number in range(len(gpu.transfers))],
            resident=self.resident,
        )

    def _triggers(self) -> list[Trigger]:
        return [
            Trigger(cycle=int(cycle), chunk=int(chunk), tiles=tiles)
            for (chunk, cycle), tiles in zip(self.gpu.fired[: self.tail], self.tiles, strict=True)
        ]

    def _step(self, number: int) -> KernelStep:
        """The step's launch and its last byte on the link, as far as they are known, else the windows around them."""
        move = self.gpu.transfers[number]
        kind: StepKind = "all_gather" if move["read_cause"] == state.AG_READ else "reduce_scatter"
        sent = self.open.get((kind, int(move["need_part"]))) if move["link"] else None
        launch, seen = self.launches.get(number), self.ended[number]
        start = launch
        if start is None:
            start = sent.first_sent if sent else max(0, seen - int(self.gpu.link["latency_cycles"]))
        end = sent.last_sent if sent else seen
        exact = launch is not None and sent is not None
        return KernelStep(
            kind=kind, chunk=int(move["chunk"]), local=not move["link"], start=start, end=max(start, end), exact=exact
        )


_KINDS: tuple[TransferKind, ...] = ("dma", "stores", "reduce_scatter", "all_gather")
"""In the order of ``np.choose`` in :meth:`_Watch._keys`."""


def _intervals(pairs: NDArray[np.int64]) -> list[tuple[int, int]]:
    return sorted((int(start), int(end)) for start, end in pairs if end > start)
