"""The operator of a T3 unit: looks at it, quiesces it, sets its watchdog, and locks it at the end."""

import random

from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Stuck
from t3hdl.interface.words import pack, unpack

from tb.cocotb.unit.host import Host

COUNTERS = (
    regs.PEAK_ENTRIES, regs.OVERFLOWED, regs.THRESHOLD, regs.UPDATES, regs.TILES, regs.TRIGGERS, regs.COMMAND_STALL,
    regs.PEAK_READY, regs.DONE_MASK, regs.VIOLATION, regs.CAPABILITY, regs.CAPABILITY_TRACKER, regs.VERSION,
)  # fmt: skip


class Operator:
    """Acts on the unit while jobs run."""

    def __init__(self, host: Host, rng: random.Random) -> None:
        self._host, self._bus, self._rng = host, host.bus, rng

    async def work(self) -> None:
        """One action after the other, until the host stops."""
        actions = (self._look, self._quiesce, self._watch, self._debug, self._acknowledge)
        while not self._host.stopping:
            await self._rng.choice(actions)()
            await self._host.rest(self._rng.randrange(200))

    async def _look(self) -> None:
        for address in COUNTERS:
            await self._bus.read(address)

    async def _quiesce(self) -> None:
        """No new chunk and no new command, until everything that was given is done; then on."""
        await self._host.control(quiesce=1)
        while not (await self._host.status())["quiet"]:
            await self._host.rest(20)
        self._host.events["quiesce"] += 1
        await self._host.control(resume=1)

    async def _watch(self) -> None:
        """A short watchdog: finds a chunk that waits for its updates."""
        await self._bus.write(regs.WATCHDOG, self._rng.choice((20, 60, 300)))
        await self._host.rest(300)
        stuck = unpack(Stuck, await self._bus.read(regs.STUCK))
        if stuck["valid"]:
            self._host.events["watchdog"] += 1
            assert stuck["seen"] <= stuck["expected"], f"the watchdog saw {stuck}"
        await self._bus.write(regs.WATCHDOG, 0)

    async def _debug(self) -> None:
        """Read a tile entry."""
        select = pack(regs.DebugSelect, way=self._rng.randrange(3), bank=self._rng.randrange(2), row=0)
        if not await self._bus.try_write(regs.DEBUG_SELECT, select):
            return
        while not (entry := unpack(regs.DebugData, await self._bus.read(regs.DEBUG_DATA)))["ready"]:
            await self._host.rest(5)
        self._host.events["debug read of a valid entry"] += entry["valid"]

    async def _acknowledge(self) -> None:
        """Read and clear the interrupts."""
        happened = unpack(regs.Interrupts, await self._bus.read(regs.IRQ_STATUS))
        self._host.events.update({f"interrupt: {name}": value for name, value in happened.items()})
        await self._bus.write(regs.IRQ_STATUS, pack(regs.Interrupts, **happened))

    async def finish(self, tracked: int, refused: dict[str, int]) -> None:
        """After the last job: counters and errors are as they must be; then a locked unit takes no configuration."""
        status = await self._host.status()
        assert not (status["unmatched"] or status["over_count"] or status["over_total"]), f"errors: {status}"
        assert await self._bus.read(regs.VIOLATIONS) == refused["refused"]
        assert await self._bus.read(regs.STALE_UPDATES) == refused["stale"]
        updates = await self._bus.read(regs.UPDATES)
        aborts = self._host.events["aborts"]
        assert updates == tracked or (aborts and updates < tracked), f"{updates} updates counted, {tracked} performed"
        await self._bus.write(regs.LOCK, pack(regs.Lock, configuration=1))
        for address in (regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.RANGE, regs.QUOTA, regs.PROFILE,
                        regs.DESCRIPTOR):  # fmt: skip
            await self._bus.refused(address)
        assert unpack(regs.Status, await self._bus.read(regs.STATUS))["locked_write"]
        self._host.events["lock"] += 1
