"""The AXI4-Lite port keeps the rules of its protocol, and makes of every complete access one request of the bus."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from t3hdl.config import T3Config, preset
from t3hdl.registers.axi import OKAY, SLVERR, AxiLitePort

from ...prover.harness import Harness
from ...prover.proof import Proof

_CHANNELS = {
    "aw": ("awaddr", "awprot"),
    "w": ("wdata", "wstrb"),
    "b": ("bresp",),
    "ar": ("araddr", "arprot"),
    "r": ("rdata", "rresp"),
}
_FROM_MANAGER = ("aw", "w", "ar")
_BOUND = 7
"""Cycles from the last of address and data to the response, at most: its own four, and three of one that goes first."""
_KEEPS = "an AXI manager keeps its items"


@dataclass(frozen=True)
class Channel:
    """A channel of the port: ``moves`` is its transfer, ``number`` how many there were before (modulo 4)."""

    valid: Value
    ready: Value
    payload: Value
    moves: Signal
    number: Signal


def axi_channels(harness: Harness, dut: Any) -> dict[str, Channel]:
    """The five channels of ``dut``, with the rule that valid and payload stay until the transfer: assumed of the
    manager, claimed of the part."""
    channels, kept = {}, []
    for name, fields in _CHANNELS.items():
        valid, ready = getattr(dut, f"axi_{name}valid"), getattr(dut, f"axi_{name}ready")
        payload = Cat(getattr(dut, f"axi_{field}") for field in fields)
        moves, number = Signal(name=f"{name}_moves"), Signal(2, name=f"{name}_number")
        harness.m.d.comb += moves.eq(valid & ready)
        harness.m.d.sync += number.eq(number + moves)
        stays = ~harness.past(valid & ~ready) | (valid & (payload == harness.past(payload)))
        if name in _FROM_MANAGER:
            kept.append(stays)
        else:
            harness.claim(f"{name.upper()} keeps its items", stays)
        channels[name] = Channel(valid, ready, payload, moves, number)
    harness.assume(_KEEPS, Cat(kept).all())
    return channels


def _accesses(_: T3Config, *, write: bool) -> Harness:
    """The n-th write or the n-th read (modulo 4, of which no two are under way) is chosen and followed."""
    port = AxiLitePort(config=preset("small"))
    harness = Harness(port)
    # The other bits of addresses and data go the way of these.
    for name in ("awaddr", "araddr", "wdata"):
        harness.drive(getattr(port, f"axi_{name}"), harness.free(f"{name}_bits", 4))
    harness.drive(port.response_data, harness.free("response_bits", 4))
    channels = axi_channels(harness, port)
    taken = Signal()
    harness.m.d.comb += taken.eq(port.bus_valid & port.bus_ready)
    harness.assume("the bus answers every request in the next cycle", port.response_valid == harness.past(taken))
    harness.assume("the bus is ready unless it answers", port.bus_ready == ~port.response_valid)
    request = Cat(port.bus_write, port.bus_address, port.bus_privileged, port.bus_data)
    harness.claim(
        "the bus request keeps its item",
        ~harness.past(port.bus_valid & ~port.bus_ready) | (port.bus_valid & (request == harness.past(request))),
    )
    _turns(harness, port, channels)
    if write:
        _writes(harness, port, channels, taken)
    else:
        _reads(harness, port, channels, taken)
    return harness


def _turns(harness: Harness, port: AxiLitePort, channels: dict[str, Channel]) -> None:
    """What is chosen while both a write and a read are complete: a cycle later it is a bus request, or refused."""
    aw, w, b, ar, r = (channels[name] for name in _CHANNELS)
    write_there = (aw.number != b.number) & (w.number != b.number) & ~b.valid
    read_there = (ar.number != r.number) & ~r.valid
    asks = port.bus_valid & ~harness.past(port.bus_valid)
    refused = b.valid & ~harness.past(b.valid | port.response_valid)
    read, after_read = Signal(), Signal(init=1)
    harness.m.d.comb += read.eq(asks & ~port.bus_write)
    with harness.m.If(asks | refused):
        harness.m.d.sync += after_read.eq(read)
    both = (asks | refused) & harness.past(write_there & read_there)
    harness.claim("in turns when both are there, writes first after reset", ~both | (read != after_read))
    harness.cover("a write and a read are there, after a write", both & ~after_read)


@dataclass(frozen=True)
class _Followed:
    """The access of interest: ``items`` are what its channels brought, ``requested`` is 1 in the cycle of its bus
    request, ``asked`` after it, ``answer`` is what the bus answered: the error, then the data. ``answered`` is 1 while
    its response is there."""

    items: tuple[Signal, ...]
    requested: Signal
    asked: Signal
    answer: Signal
    answered: Signal


def _follow(harness: Harness, port: AxiLitePort, taken: Value, sources: list[Channel], response: Channel) -> _Followed:
    """Follows one access, and claims what holds for reads and writes."""
    m, write = harness.m, len(sources) == 2
    which = harness.chosen("access_of_interest", 2)
    items = []
    for source in sources:
        item = Signal(len(source.payload))
        with m.If(source.moves & (source.number == which)):
            m.d.sync += item.eq(source.payload)
        items.append(item)
    requested, asked, answered, complete = Signal(), Signal(), Signal(), Signal()
    answer, waits = Signal(65), Signal(range(_BOUND + 2))
    m.d.comb += [
        requested.eq(taken & (port.bus_write == write) & (response.number == which)),
        answered.eq(response.valid & (response.number == which)),
        complete.eq(Cat(source.number != response.number for source in sources).all()),
    ]
    with m.If(requested):
        m.d.sync += asked.eq(1)
    with m.Elif(response.moves & (response.number == which)):
        m.d.sync += asked.eq(0)
    with m.If(harness.past(requested)):
        m.d.sync += answer.eq(Cat(port.response_error, port.response_data))
    m.d.sync += waits.eq(Mux(complete & ~response.valid, waits + 1, 0))
    harness.claim("no response without an access", complete | ~response.valid)
    harness.claim("a bus request is of a complete access", complete | ~requested)
    harness.claim("an access is asked of the bus once", ~(requested & asked))
    harness.claim(
        "at most two are under way", Cat((source.number - response.number)[:2] <= 2 for source in sources).all()
    )
    harness.claim("a complete access is answered within the bound", waits < _BOUND)
    harness.cover("it waits for one of the other direction", response.valid & (waits == _BOUND - 1))
    return _Followed(tuple(items), requested, asked, answer, answered)


def _writes(harness: Harness, port: AxiLitePort, channels: dict[str, Channel], taken: Value) -> None:
    """What reaches the bus, and what is answered."""
    response = channels["b"]
    it = _follow(harness, port, taken, [channels["aw"], channels["w"]], response)
    (address, data), full = it.items, Signal()
    harness.m.d.comb += full.eq(data[64:].all())
    wanted = Cat(address[:17], data[:64])
    harness.claim(
        "the bus gets address, privilege and data of the write, if all bytes are enabled",
        ~it.requested | (full & (Cat(port.bus_address, port.bus_privileged, port.bus_data) == wanted)),
    )
    harness.claim("a write is answered after its bus request, or without one", ~it.answered | (it.asked == full))
    harness.claim(
        "SLVERR for a write in part or an error of the bus, else OKAY",
        ~it.answered | (response.payload == Mux(~full | it.answer[0], SLVERR, OKAY)),
    )
    data_first = channels["w"].number != channels["aw"].number
    harness.cover("data before the address, and OKAY", it.answered & full & ~it.answer[0] & harness.past(data_first))
    harness.cover("a write in part is refused", it.answered & ~full)


def _reads(harness: Harness, port: AxiLitePort, channels: dict[str, Channel], taken: Value) -> None:
    """What reaches the bus, and what is answered."""
    response = channels["r"]
    it = _follow(harness, port, taken, [channels["ar"]], response)
    harness.claim(
        "the bus gets address and privilege of the read",
        ~it.requested | (Cat(port.bus_address, port.bus_privileged) == it.items[0][:17]),
    )
    harness.claim("a read is answered after its bus request", ~it.answered | it.asked)
    error, data = it.answer[0], it.answer[1:]
    harness.claim(
        "the data of the bus and OKAY, or zeros and SLVERR",
        ~it.answered | (response.payload == Mux(error, Cat(Const(0, 64), Const(SLVERR, 2)), data)),
    )
    harness.cover("data", it.answered & (data == 5) & ~error)
    harness.cover("an error", it.answered & error)


PROOFS = (
    Proof(
        name="axi.writes",
        invariants=(8,),
        says="Every AXI4-Lite write becomes one bus request, or SLVERR if not all bytes are enabled, and gets one "
        f"response, in order, in turns with reads, within {_BOUND} cycles; the protocol's rules hold on every channel.",
        harness=partial(_accesses, write=True),
        sizes={"any": preset("small")},
        depth=24,
    ),
    Proof(
        name="axi.reads",
        invariants=(8,),
        says="Every AXI4-Lite read becomes one bus request and gets one response with its data, in order, in turns "
        f"with writes, within {_BOUND} cycles; the protocol's rules hold on every channel.",
        harness=partial(_accesses, write=False),
        sizes={"any": preset("small")},
        depth=24,
    ),
)
