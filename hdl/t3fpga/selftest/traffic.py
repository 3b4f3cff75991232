"""The stores of the GEMM and the updates that come over the link, as requests to the slices."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from t3hdl.common.queues import InputQueue
from t3hdl.config import T3Config
from t3hdl.interface.layouts import LENGTH_BITS, LINE_BITS, MemoryRequest, Op, Route, channel_of

from . import gemm
from .report.failures import Failure, FailureCode
from .rounds import Seed, dtype_of, op_of, spread
from .tracker.walk import Pace, Walk, stride

READ_BIT = MemoryRequest["tag"].shape - 1
READ_TAG = 1 << READ_BIT
"""Tag of a read whose line is wanted; other tags have the values of an update in their low 16 bits."""
CONTEXT = 0
_FOREIGN_CONTEXT = 1

Access = data.StructLayout({"address": gemm.ADDRESS_BITS, "length": LENGTH_BITS, "op": 3, "tagged": 1, "foreign": 1})
"""An access to the memory, from which its request follows; updates and stores have one line."""

_FLYING = 8
"""Stores that may be in the egress at the same time."""


def line_of(address: Value) -> Value:
    """The line that an address of the memory names."""
    return (address | gemm.BASE)[:LINE_BITS]


def request_of(access: Any, *, gpu: Value, tag: Value, dtype: Value, epoch: Value, config: T3Config) -> dict[str, Any]:
    """Fields of the access's MemoryRequest, of a GPU's store, or of an update in the link's words."""
    return {
        "line": line_of(access.address), "op": access.op, "dtype": dtype,
        "context": Mux(access.foreign, _FOREIGN_CONTEXT, CONTEXT), "source": gpu, "tagged": access.tagged,
        "wf": gemm.wavefront(access.address, config),
        "right": gemm.right(access.address), "bottom": gemm.bottom(access.address),
        "row": gemm.tile_row(access.address), "col": gemm.tile_col(access.address), "epoch": epoch,
        "tag": tag, "length": access.length,
    }  # fmt: skip


def assign(target: Any, fields: dict[str, Any]) -> list[Any]:
    """Assignments of the named fields."""
    return [target[name].eq(value) for name, value in fields.items()]


class Distributor(wiring.Component):
    """Sends accesses to the slices of their lines, which take them at their own pace.

    Parameters
    ----------
    config : the hardware configuration.
    incoming : 1 for what comes over the link; says which values updates carry.
    read_tag : tag of reads.

    Members
    -------
    seed : In : that of the round.
    i : In(stream(Access)) : the accesses.
    o : Out(stream(MemoryRequest)).array(slices) : to one port of each slice.
    busy : Out(1) : an access waits.

    Latency: 2. Accesses to one slice keep their order.
    """

    def __init__(self, *, config: T3Config, incoming: int, read_tag: int = 0) -> None:
        super().__init__(
            {
                "seed": In(Seed),
                "i": In(stream.Signature(Access)),
                "o": Out(stream.Signature(MemoryRequest)).array(config.slices),
                "busy": Out(1),
            }
        )
        self._config, self._incoming, self._read_tag = config, incoming, read_tag

    def elaborate(self, platform: Any) -> Module:
        """A queue; its head goes to the register of one slice, near which that one can be placed.

        Which slice it is has been worked out before, because the slices' answers come from all over the device.
        """
        m = Module()
        number = channel_of(line_of(self.i.payload.address), self._config.slices)
        m.submodules.queue = queue = InputQueue(
            data.StructLayout({"access": Access, "channel": range(self._config.slices)})
        )
        m.d.comb += [
            queue.i.valid.eq(self.i.valid),
            queue.i.payload.access.eq(self.i.payload),
            queue.i.payload.channel.eq(number),
            self.i.ready.eq(queue.i.ready),
        ]
        head, channel = queue.o.payload.access, queue.o.payload.channel
        values = spread(self.seed.as_value(), head.address, incoming=self._incoming)
        fields = request_of(
            head,
            gpu=self.seed.gpu + self._incoming,
            tag=Mux(head.op == Op.READ, self._read_tag, values),
            dtype=dtype_of(self.seed, self._config),
            epoch=self.seed.epoch,
            config=self._config,
        )
        free = [~port.valid | port.ready for port in self.o]
        for number, port in enumerate(self.o):
            with m.If(free[number]):
                m.d.sync += [port.valid.eq(queue.o.valid & (channel == number)), *assign(port.payload, fields)]
        m.d.comb += [
            queue.o.ready.eq(Array(free)[channel]),
            self.busy.eq(queue.o.valid | Cat(port.valid for port in self.o).any()),
        ]
        return m


class LocalTraffic(wiring.Component):
    """The GPU's own stores, through the egress: a packet for the peer, or an access to a slice. Also clears the memory.

    Members
    -------
    seed, noise : In : that of the round; 5 bits for the pace.
    zero, play : In(1) : start to clear the memory, or to play the stores.
    store : Out(stream(MemoryRequest)), route : In(stream(Route)) : the egress matcher of the unit.
    compute_write : Out(stream(MemoryRequest)).array(slices) : to the slices.
    busy : Out(1) : not everything was taken by the slices.
    failure : Out : pulse; a row was not routed as it must be.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed), "noise": In(5), "zero": In(1), "play": In(1),
            "store": Out(stream.Signature(MemoryRequest)), "route": In(stream.Signature(Route)),
            "compute_write": Out(stream.Signature(MemoryRequest)).array(config.slices),
            "busy": Out(1), "failure": Out(Failure),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """Walk, egress, distributor; ``flying``: addresses of the rows in the egress, which keeps their order."""
        m = Module()
        m.submodules.walk = walk = Walk()
        m.submodules.pace = pace = Pace()
        m.submodules.out = out = Distributor(config=self._config, incoming=0)
        m.submodules.flying = flying = SyncFIFO(width=gemm.ADDRESS_BITS, depth=_FLYING)
        zeroing = Signal()
        with m.If(self.zero | self.play):
            m.d.sync += zeroing.eq(self.zero)
        m.d.comb += [
            pace.noise.eq(self.noise),
            walk.start.eq(self.zero | self.play),
            walk.first.eq(Cat(0, 0, 0, 0, 0, 0, (self.seed.gpu + 1)[:2])),
            walk.step.eq(stride(self.seed.plain[0], self.seed.local_step)),
            walk.go.eq(pace.go | zeroing),
            out.seed.eq(self.seed),
            self.busy.eq(walk.busy | flying.r_rdy | out.busy),
        ]
        self._send(m, walk.o, zeroing, flying)
        self._receive(m, out.i, zeroing)
        self._judge(m, zeroing, flying)
        for inner, outer in zip(out.o, self.compute_write, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        return m

    def _send(self, m: Module, walk: Any, zeroing: Value, flying: SyncFIFO) -> None:
        """Rows of tiles, and stores of the GPU's own elsewhere; of its other lines the link takes care."""
        address = walk.payload
        store = Signal(Access)
        own = Signal()
        m.d.comb += [
            own.eq(zeroing | gemm.in_output(address) | gemm.written_locally(address)),
            store.address.eq(address),
            store.op.eq(Mux(zeroing, int(Op.READ_CLEAR), int(Op.STORE))),
            store.tagged.eq(~zeroing & gemm.in_output(address)),
            self.store.valid.eq(walk.valid & own & flying.w_rdy),
            walk.ready.eq((self.store.ready & flying.w_rdy) | ~own),
            flying.w_en.eq(self.store.valid & self.store.ready),
            flying.w_data.eq(address),
            *assign(
                self.store.payload,
                request_of(
                    store,
                    gpu=self.seed.gpu,
                    tag=0,
                    dtype=~dtype_of(self.seed, self._config),
                    epoch=self.seed.epoch,
                    config=self._config,
                ),
            ),
        ]

    def _receive(self, m: Module, out: Any, zeroing: Value) -> None:
        """Rows that stay go on, with the name that their line says."""
        route, address = self.route.payload, self.route.payload.line[: gemm.ADDRESS_BITS]
        m.d.comb += [
            out.valid.eq(self.route.valid & ~route.remote),
            self.route.ready.eq(out.ready | route.remote),
            out.payload.address.eq(address),
            out.payload.op.eq(route.op),
            out.payload.tagged.eq(~zeroing & gemm.in_output(address)),
        ]

    def _judge(self, m: Module, zeroing: Value, flying: SyncFIFO) -> None:
        """Compares a row that comes back with what must become of the one that was sent."""
        taken, route, known, address = Signal(), Signal(Route), Signal(), Signal(gemm.ADDRESS_BITS)
        compared, compared_address = Signal(), Signal(gemm.ADDRESS_BITS)
        remote = gemm.in_output(address) & (gemm.position(address, self.seed.gpu) == 0) & ~zeroing
        line = address | Mux(remote, gemm.PEER_BASE, gemm.BASE)
        op = Mux(zeroing, int(Op.READ_CLEAR), Mux(remote, op_of(self.seed), int(Op.STORE)))
        faults = [Signal(name=name) for name in ("not_sent", "wrong_line", "wrong_side", "wrong_peer", "wrong_op")]
        m.d.comb += flying.r_en.eq(self.route.valid & self.route.ready)
        m.d.sync += [
            taken.eq(flying.r_en),
            route.eq(self.route.payload),
            known.eq(flying.r_rdy),
            address.eq(flying.r_data),
            compared.eq(taken),
            compared_address.eq(address),
            faults[0].eq(~known),
            faults[1].eq(route.line != line),
            faults[2].eq(route.remote != remote),
            faults[3].eq(remote & (route.peer != (self.seed.gpu - 1)[:2])),
            faults[4].eq(route.op != op),
            self.failure.valid.eq(compared & Cat(faults).any()),
            self.failure.what.eq(FailureCode.ROUTE),
            self.failure.detail.eq(compared_address),
        ]


class IncomingTraffic(wiring.Component):
    """What comes over the link: the updates of other GPUs, stores elsewhere, and one write of another context.

    Members
    -------
    seed, noise : In : that of the round; 5 bits for the pace.
    play, drop : In(1) : starts; ``drop``: the first update is lost on the way.
    comm_write : Out(stream(MemoryRequest)).array(slices) : to the slices.
    busy : Out(1) : not everything was taken by the slices.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed), "noise": In(5), "play": In(1), "drop": In(1),
            "comm_write": Out(stream.Signature(MemoryRequest)).array(config.slices), "busy": Out(1),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """Walk and distributor."""
        m = Module()
        m.submodules.walk = walk = Walk()
        m.submodules.pace = pace = Pace()
        m.submodules.out = out = Distributor(config=self._config, incoming=1)
        address, gpu, dropping = walk.o.payload, self.seed.gpu, Signal()
        tracked, foreign, elsewhere, sent = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            pace.noise.eq(self.noise),
            walk.start.eq(self.play),
            walk.first.eq(Cat(0, 0, 0, 0, 0, 0, (gpu + 2)[:2])),
            walk.step.eq(stride(self.seed.plain[1], self.seed.incoming_step)),
            walk.go.eq(pace.go),
            tracked.eq(gemm.in_output(address) & (gemm.position(address, gpu) != 0)),
            foreign.eq(gemm.foreign(address, gpu)),
            elsewhere.eq(~gemm.in_output(address) & ~gemm.written_locally(address)),
            sent.eq((tracked & ~dropping) | foreign | elsewhere),
            out.seed.eq(self.seed),
            out.i.valid.eq(walk.o.valid & sent),
            walk.o.ready.eq(out.i.ready | ~sent),
            out.i.payload.address.eq(address),
            out.i.payload.op.eq(Mux(elsewhere, int(Op.STORE), op_of(self.seed))),
            out.i.payload.tagged.eq(gemm.in_output(address)),
            out.i.payload.foreign.eq(foreign),
            self.busy.eq(walk.busy | out.busy),
        ]
        with m.If(self.play):
            m.d.sync += dropping.eq(self.drop)
        with m.Elif(walk.o.valid & tracked):
            m.d.sync += dropping.eq(0)
        for inner, outer in zip(out.o, self.comm_write, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        return m


class BackgroundReads(wiring.Component):
    """Reads of the GPU at random lines, mostly of one, of every eighth block to its end. Their data are not checked:
    they compete with the updates.

    Members
    -------
    seed, noise, enable : In : that of the round; 10 bits for place and pace; read.
    compute_read : Out(stream(MemoryRequest)).array(slices) : to the slices.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(
            {
                "seed": In(Seed),
                "noise": In(10),
                "enable": In(1),
                "compute_read": Out(stream.Signature(MemoryRequest)).array(config.slices),
            }
        )
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """An access in a register, and the distributor."""
        m = Module()
        m.submodules.out = out = Distributor(config=self._config, incoming=0)
        for inner, outer in zip(out.o, self.compute_read, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        m.d.comb += [out.seed.eq(self.seed), out.i.payload.op.eq(Op.READ)]
        with m.If(~out.i.valid | out.i.ready):
            address = self.noise[: gemm.ADDRESS_BITS]
            to_the_end = ~address[:LENGTH_BITS] & address[LENGTH_BITS:][:3].all().replicate(LENGTH_BITS)
            m.d.sync += [
                out.i.valid.eq(self.enable & (self.noise[gemm.ADDRESS_BITS :] == 0)),
                out.i.payload.address.eq(address),
                out.i.payload.length.eq(to_the_end),
            ]
        return m
