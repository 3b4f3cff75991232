"""Random AXI4-Lite traffic through cocotbext-axi, an independent implementation of the protocol, and its scoreboard."""

import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from cocotb.triggers import gather
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiProt, AxiResp

from tb.coverage_bins import CoverageBins

BYTES = 8
STROBES = (1 << BYTES) - 1
ADDRESSES = 0x200
"""Addresses below this one are used, so that accesses meet."""


def plain_master_of(dut: Any, prefix: str, clock: Any, reset: Any) -> AxiLiteMaster:
    """A bus driver on the ports ``<prefix>_*`` that never pauses."""
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, prefix), clock, reset)
    for side in (master.write_if, master.read_if):
        side.log.setLevel(logging.WARNING)
    return master


def master_of(dut: Any, prefix: str, clock: Any, reset: Any, rng: random.Random) -> AxiLiteMaster:
    """A bus driver on the ports ``<prefix>_*`` whose channels pause at random."""
    master = plain_master_of(dut, prefix, clock, reset)
    channels = (
        master.write_if.aw_channel,
        master.write_if.w_channel,
        master.write_if.b_channel,
        master.read_if.ar_channel,
        master.read_if.r_channel,
    )
    for channel in channels:
        channel.set_pause_generator(pauses(rng.getrandbits(32)))
    return master


def pauses(seed: int) -> Iterator[bool]:
    """Phases of flow, of trickle and of standstill."""
    rng = random.Random(seed)
    while True:
        share = rng.choice((0.0, 0.0, 0.3, 0.9))
        for _ in range(rng.randrange(1, 60)):
            yield rng.random() < share


def refuses(address: int) -> bool:
    """Whether the registers behind the port refuse this address."""
    return address // BYTES % 5 == 3


class Memory:
    """The registers behind the port, and the requests that must arrive at them, in order of their kind."""

    def __init__(self) -> None:
        self._words: dict[int, int] = {}
        self._writes: deque[tuple[int, int, bool]] = deque()
        self._reads: deque[tuple[int, bool]] = deque()
        self._answers: deque[int] = deque()

    def expect_write(self, address: int, data: int, privileged: bool) -> None:
        """A complete write is outstanding."""
        self._writes.append((address, data, privileged))

    def expect_read(self, address: int, privileged: bool) -> None:
        """A read is outstanding."""
        self._reads.append((address, privileged))

    def serve(self, write: bool, address: int, data: int, privileged: bool) -> tuple[bool, int]:
        """A request has arrived: whether it is refused, and the data that a read gives (garbage for the others)."""
        if write:
            assert self._writes, f"a write to {address:#x} that the host did not make"
            assert self._writes.popleft() == (address, data, privileged), f"write to {address:#x} differs"
            if not refuses(address):
                self._words[address] = data
            return refuses(address), 0xDEAD
        assert self._reads, f"a read of {address:#x} that the host did not make"
        assert self._reads.popleft() == (address, privileged), f"read of {address:#x} differs"
        value = self._words.get(address, 0)
        self._answers.append(0 if refuses(address) else value)
        return refuses(address), 0xBAD if refuses(address) else value

    def answer(self) -> int:
        """The data of the oldest read whose data the host has not yet looked at."""
        return self._answers.popleft()

    def check_empty(self) -> None:
        """Every request has arrived. Raises AssertionError otherwise."""
        assert not (self._writes or self._reads or self._answers), "accesses were lost"


class Traffic:
    """Random accesses whose responses are checked."""

    def __init__(self, master: AxiLiteMaster, memory: Memory, rng: random.Random) -> None:
        self._master, self._memory, self._rng = master, memory, rng
        self.accesses = 0

    async def burst(self, count: int, at_once: int) -> None:
        """``at_once`` users of each kind, who make ``count`` accesses one after the other."""
        kinds = self._rng.choice(((self._write,), (self._read,), (self._write, self._read)))
        await gather(*(self._user(kind, count) for kind in kinds for _ in range(at_once)))

    async def _user(self, access: Callable[[], Awaitable[None]], count: int) -> None:
        for _ in range(count):
            await access()
            self.accesses += 1

    def _target(self) -> tuple[int, AxiProt]:
        prot = self._rng.choice((AxiProt.NONSECURE, AxiProt.PRIVILEGED | AxiProt.NONSECURE, AxiProt.PRIVILEGED))
        return self._rng.randrange(0, ADDRESSES, BYTES), prot

    async def _write(self) -> None:
        address, prot = self._target()
        first, last = 0, BYTES
        if self._rng.random() < 0.2:
            first, last = sorted(self._rng.sample(range(BYTES + 1), 2))
        data = self._rng.randbytes(last - first)
        whole = len(data) == BYTES
        if whole:
            self._memory.expect_write(address, int.from_bytes(data, "little"), bool(prot & AxiProt.PRIVILEGED))
        answer = await self._master.write(address + first, data, prot)
        expected = AxiResp.SLVERR if not whole or refuses(address) else AxiResp.OKAY
        assert answer.resp == expected, f"write to {address + first:#x}: {answer.resp}, not {expected!r}"

    async def _read(self) -> None:
        address, prot = self._target()
        self._memory.expect_read(address, bool(prot & AxiProt.PRIVILEGED))
        answer = await self._master.read(address, BYTES, prot)
        expected = AxiResp.SLVERR if refuses(address) else AxiResp.OKAY
        data = self._memory.answer()
        assert answer.resp == expected, f"read of {address:#x}: {answer.resp}, not {expected!r}"
        assert int.from_bytes(answer.data, "little") == data, (
            f"read of {address:#x}: {answer.data.hex()}, not {data:#x}"
        )


def axi_bins(prefix: str) -> CoverageBins:
    """Bins of an AXI4-Lite subordinate whose ports begin with ``prefix``."""
    bins: CoverageBins = {}
    for channel in ("aw", "w", "b", "ar", "r"):
        valid, ready = f"{prefix}{channel}valid", f"{prefix}{channel}ready"
        bins[f"{prefix}{channel}: back-pressure"] = lambda t, v=valid, r=ready: t.is_set(v) & ~t.is_set(r)
        bins[f"{prefix}{channel}: pause"] = lambda t, v=valid, r=ready: ~t.is_set(v) & t.is_set(r)
    waits = f"{prefix}awvalid", f"{prefix}wvalid"
    return bins | {
        f"{prefix}* address before data": lambda t: t.is_set(waits[0]) & ~t.is_set(waits[1]),
        f"{prefix}* data before address": lambda t: t.is_set(waits[1]) & ~t.is_set(waits[0]),
        f"{prefix}* address and data at once": lambda t: t.is_set(waits[1]) & t.is_set(waits[0]),
        f"{prefix}* part of a word": lambda t: t.is_set(waits[1]) & (t.get(f"{prefix}wstrb") != STROBES),
        f"{prefix}* write refused": lambda t: t.is_set(f"{prefix}bvalid") & t.is_set(f"{prefix}bresp"),
        f"{prefix}* read refused": lambda t: t.is_set(f"{prefix}rvalid") & t.is_set(f"{prefix}rresp"),
        f"{prefix}* write and read answered at once": lambda t: (
            t.is_set(f"{prefix}bvalid") & t.is_set(f"{prefix}rvalid")
        ),
    }
