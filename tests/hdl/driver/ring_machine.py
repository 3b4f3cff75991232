"""Four GPUs in a ring around compiled T3 units and NMC units: memories, links and DMA engines, cycle by cycle.

Everything that T3 does is the RTL's; what is modelled here has no timing to speak of: a memory that serves one line per
channel and cycle, links with a fixed latency, DMA engines that read and send one burst after the other.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.layouts import BURST_LINES, DmaCommand, Dtype, MemoryRequest, NmcRequest, Op, Route, channel_of
from t3sim.hardware.abi import Instance

LINK_LATENCY = 40
FULL_MASK = (1 << 32) - 1


@dataclass(frozen=True)
class Output:
    """An output matrix in lines: ``rows`` x ``lines``, tiles of ``tile_rows`` x ``tile_lines``."""

    base: int
    rows: int
    lines: int
    pitch: int
    tile_rows: int
    tile_lines: int
    wavefront_rows: int

    @property
    def tiles(self) -> tuple[int, int]:
        """Tile rows and tile columns."""
        return -(-self.rows // self.tile_rows), -(-self.lines // self.tile_lines)

    def rows_of(self, row: int, col: int) -> Iterator[tuple[int, int, dict[str, int]]]:
        """The matrix rows of a tile: (offset of the first line, lines, the name that its accesses carry)."""
        height, width = self.tiles
        for matrix_row in range(row * self.tile_rows, min(self.rows, (row + 1) * self.tile_rows)):
            first = col * self.tile_lines
            name = {"row": row, "col": col, "wf": matrix_row % self.tile_rows // self.wavefront_rows,
                    "right": int(col == width - 1), "bottom": int(row == height - 1)}  # fmt: skip
            yield matrix_row * self.pitch + first, min(self.tile_lines, self.lines - first), name


@dataclass
class _Read:
    """A burst that the DMA engine reads: where its lines go, how many they are, and those that came."""

    target: dict[str, int]
    lines: int
    came: list[int] = field(default_factory=list)


def bursts_of(first: int, lines: int) -> Iterator[tuple[int, int]]:
    """Lines from ``first`` on as bursts, each in an aligned block: offset and lines."""
    at = 0
    while at < lines:
        count = min(lines - at, BURST_LINES - (first + at) % BURST_LINES)
        yield at, count
        at += count


class Gpu:
    """One GPU: its T3 unit, an NMC unit and a memory per channel, its DMA engine and its end of the link."""

    def __init__(self, config: T3Config, unit: Instance, nmcs: list[Instance], output: Output, seed: int) -> None:
        self.config, self.unit, self.nmcs, self.output = config, unit, nmcs, output
        self.random = random.Random(seed)
        self.memory: dict[int, int] = {}
        self.data: dict[
            int, Any
        ] = {}  # of a tag: the lines that are written; or where a read's go, and those that came
        self.queues = {
            (port, channel): deque()
            for port in ("compute_write", "comm_write", "comm_read")
            for channel in range(config.slices)
        }
        self.stores: deque = deque()
        self.routed: deque = deque()
        self.packets: deque = deque()  # from the neighbour: (arrival, request fields, data)
        self.commands: deque = deque()
        self.reads_left = 0
        self.done: deque = deque()
        self.waiting = [deque() for _ in nmcs]
        self.read_lines: list[int | None] = [None] * len(nmcs)
        self.now = self.tag = 0
        self.peer: Gpu | None = None

    def write(self, port: str, fields: dict[str, int], values: list[int]) -> None:
        """Lines from that of ``fields`` on, in bursts."""
        for at, count in bursts_of(fields["line"], len(values)):
            part = {"line": fields["line"] + at, "length": count - 1}
            self.offer(port, fields | part, values[at : at + count])

    def offer(self, port: str, fields: dict[str, int], data: Any) -> None:
        """A burst to the channel of its lines."""
        self.tag += 1
        self.data[self.tag] = data
        item = {"context": 1, "dtype": Dtype.FP16, **fields, "tag": self.tag}
        self.queues[port, channel_of(item["line"], self.config.slices)].append(MemoryRequest.const(item).as_bits())

    def cycle(self) -> None:
        """Inputs of this cycle from outputs of this cycle, then the clock."""
        self.unit.set("now", self.now)
        self._egress()
        self._arrivals()
        self._commands()
        for channel in range(self.config.slices):
            self._channel(channel)
        self.unit.step()
        for nmc in self.nmcs:
            nmc.step()
        self.now += 1

    def _send(self, port: str, queue: deque, part: Instance) -> None:
        """The head of a queue at a stream."""
        part.set(f"{port}.valid", int(bool(queue)))
        if queue:
            part.set(f"{port}.payload", queue[0])
            if part.get(f"{port}.ready"):
                queue.popleft()

    def store(self, row: int, col: int, values: dict[int, int], epoch: int = 0, rows: slice = slice(None)) -> None:
        """The stores of a tile by the job of this epoch; ``values`` by line offset; ``rows``: which of its rows."""
        for offset, lines, name in list(self.output.rows_of(row, col))[rows]:
            name |= {"epoch": epoch}
            first = self.output.base + offset
            for at, count in bursts_of(first, lines):
                item = {"line": first + at, "length": count - 1, "op": Op.STORE, "context": 1, "tagged": 1, **name}
                self.stores.append(MemoryRequest.const(item).as_bits())
                self.routed.append((name, [values[offset + at + i] for i in range(count)]))

    def _egress(self) -> None:
        self._send("store.0", self.stores, self.unit)
        self.unit.set("route.0.ready", 1)
        if not self.unit.get("route.0.valid"):
            return
        route = Route.from_bits(self.unit.get("route.0.payload"))
        name, values = self.routed.popleft()
        fields = {"line": route.line, "op": int(route.op), "tagged": 1, **name}
        if route.remote:
            self.peer.packets.append((self.now + LINK_LATENCY, fields, values))
        else:
            self.write("compute_write", fields, values)

    def _arrivals(self) -> None:
        while self.packets and self.packets[0][0] <= self.now:
            _, fields, values = self.packets.popleft()
            self.write("comm_write", fields, values)

    def _commands(self) -> None:
        """One block at a time: all its lines are read, then its credit goes back."""
        self.unit.set("command.ready", int(len(self.commands) < 2))
        if self.unit.get("command.valid") and len(self.commands) < 2:
            self.commands.append(DmaCommand.from_bits(self.unit.get("command.payload")))
        self.unit.set("command_done_valid", int(bool(self.done)))
        if self.done:
            self.unit.set("command_done", self.done.popleft())
        if self.commands and self.reads_left == 0:
            command = self.commands[0]
            for row in range(command.row, command.row + command.rows):
                for col in range(command.col, command.col + command.cols):
                    for offset, lines, name in self.output.rows_of(row, col):
                        for at, count in bursts_of(command.base + offset, lines):
                            target = {"line": command.peer_base + offset + at, "op": int(command.op), "tagged": 1}
                            read = {"line": command.base + offset + at, "length": count - 1, "op": Op.READ}
                            self.offer("comm_read", read, _Read(target | {"epoch": int(command.epoch)} | name, count))
                            self.reads_left += 1

    def _read_done(self, tag: int, line: int) -> None:
        read = self.data[tag]
        read.came.append(line)
        if len(read.came) < read.lines:
            return
        self.peer.packets.append((self.now + LINK_LATENCY, read.target, read.came))
        del self.data[tag]
        self.reads_left -= 1
        if self.reads_left == 0:
            self.done.append(self.commands.popleft().context)

    def _channel(self, channel: int) -> None:
        """The slice's streams, its DRAM queue, the NMC unit and its memory."""
        unit, nmc, waiting = self.unit, self.nmcs[channel], self.waiting[channel]
        for port in ("compute_write", "comm_write", "comm_read"):
            self._send(f"{port}.{channel}", self.queues[port, channel], unit)
        unit.set(f"occupancy.{channel}", min(127, len(waiting)))
        room = len(waiting) <= 16 - BURST_LINES and self.random.random() < 0.8
        unit.set(f"dram.{channel}.ready", int(room))
        if room and unit.get(f"dram.{channel}.valid"):
            request = MemoryRequest.from_bits(unit.get(f"dram.{channel}.payload"))
            lines = request.length + 1
            for i, data in enumerate([0] * lines if request.op == Op.READ else self.data.pop(request.tag)):
                fields = {"line": request.line + i, "op": request.op, "dtype": request.dtype, "mask": FULL_MASK,
                          "tag": request.tag, "data": data}  # fmt: skip
                waiting.append(NmcRequest.const(fields).as_bits())
        self._send("request", waiting, nmc)
        if self.read_lines[channel] is not None:
            nmc.set("read_data", self.memory.get(self.read_lines[channel], 0))
        self.read_lines[channel] = nmc.get("read_line") if nmc.get("read_valid") else None
        if nmc.get("write_valid") and nmc.get("write_mask"):
            self.memory[nmc.get("write_line")] = nmc.get("write_data")
        if nmc.get("done_valid") and isinstance(self.data.get(nmc.get("done_tag")), _Read):
            self._read_done(nmc.get("done_tag"), nmc.get("done_data"))


class Ring:
    """The GPUs, stepped together; ``read`` and ``write`` are register accesses of the host over AXI4-Lite."""

    def __init__(self, gpus: list[Gpu]) -> None:
        self.gpus = gpus
        for number, gpu in enumerate(gpus):
            gpu.peer = gpus[(number + 1) % len(gpus)]

    def cycle(self) -> None:
        for gpu in self.gpus:
            gpu.cycle()

    def write(self, gpu: int, address: int, value: int) -> int:
        """Returns the response."""
        unit = self.gpus[gpu].unit
        for name, item in (("awaddr", address), ("wdata", value), ("wstrb", 0xFF)):
            unit.set(f"axi_{name}", item)
        waiting = {"aw", "w"}
        while waiting:
            taken = {channel for channel in waiting if unit.get(f"axi_{channel}ready")}
            for channel in ("aw", "w"):
                unit.set(f"axi_{channel}valid", int(channel in waiting))
            self.cycle()
            waiting -= taken
        unit.set("axi_awvalid", 0)
        unit.set("axi_wvalid", 0)
        return self._answer(unit, "b")[0]

    def read(self, gpu: int, address: int) -> tuple[int, int]:
        """Returns response and value."""
        unit = self.gpus[gpu].unit
        unit.set("axi_araddr", address)
        unit.set("axi_arvalid", 1)
        while not unit.get("axi_arready"):
            self.cycle()
        self.cycle()
        unit.set("axi_arvalid", 0)
        return self._answer(unit, "r")

    def _answer(self, unit: Instance, channel: str) -> tuple[int, int]:
        unit.set(f"axi_{channel}ready", 1)
        while not unit.get(f"axi_{channel}valid"):
            self.cycle()
        answer = unit.get(f"axi_{channel}resp"), unit.get("axi_rdata") if channel == "r" else 0
        self.cycle()
        unit.set(f"axi_{channel}ready", 0)
        return answer


def lines_of(values: np.ndarray) -> list[int]:
    """FP16 values, sixteen per line."""
    return [int.from_bytes(row.tobytes(), "little") for row in values.astype(np.float16).reshape(-1, 16)]
