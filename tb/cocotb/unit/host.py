"""The software of a T3 unit: programs and arms jobs over AXI4-Lite, watches them, aborts, quiesces, and is refused."""

import random
from collections import Counter
from typing import Any

from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteMaster, AxiProt, AxiResp
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ContextStatus
from t3hdl.interface.words import pack, unpack

from tb.cocotb.unit.job import Job
from tb.cocotb.unit.machine import Fields, Machine
from tb.cocotb.unit.output import SHAPES

BYTES = 8
PATIENCE = 60000
"""Cycles after which a job that does not end, or a CONTROL write that is refused, is a failure."""


class Bus:
    """Reads and writes of registers whose responses are as expected."""

    def __init__(self, master: AxiLiteMaster) -> None:
        self._master = master

    async def try_write(self, address: int, value: int) -> bool:
        """Whether the unit has taken the write."""
        answer = await self._master.write(address, value.to_bytes(BYTES, "little"), AxiProt.PRIVILEGED)
        return answer.resp == AxiResp.OKAY

    async def write(self, address: int, value: int) -> None:
        """A write that must be good."""
        assert await self.try_write(address, value), f"write of {value:#x} to {address:#x} was refused"

    async def refused(self, address: int, value: int = 0) -> None:
        """A write that must be refused."""
        assert not await self.try_write(address, value), f"write of {value:#x} to {address:#x} was not refused"

    async def read(self, address: int) -> int:
        """A read that must be good."""
        answer = await self._master.read(address, BYTES)
        assert answer.resp == AxiResp.OKAY, f"read of {address:#x} was refused"
        return int.from_bytes(answer.data, "little")

    async def read_refused(self, address: int) -> None:
        """A read that must be refused."""
        answer = await self._master.read(address, BYTES)
        assert answer.resp == AxiResp.SLVERR, f"read of {address:#x} was not refused"


class Host:
    """Runs jobs in all contexts at the same time; ``events`` counts what happened, for coverage."""

    def __init__(self, bus: Bus, machine: Machine, config: T3Config, clock: Any, rng: random.Random) -> None:
        self.bus, self._machine, self._config, self._clock, self._rng = bus, machine, config, clock, rng
        self.events: Counter[str] = Counter()
        self._jobs: dict[int, Job] = {}
        self._number = 0
        self.stopping = False
        machine.on_command = lambda command: self._jobs[command["context"]].see(command)

    async def start(self) -> None:
        """Wait for the walkers, program what all jobs share."""
        while not (await self.status())["init_done"]:
            await self.rest(10)
        for (bottom, right, wf), (rows, lines) in SHAPES.items():
            await self.bus.write(regs.PROFILE + regs.PROFILE_STRIDE * (32 * bottom + 16 * right + wf), rows * lines)
        enabled = {"complete": 1, "watchdog": 1, "violation": 1, "stale_update": 1, "aborted": 1}
        await self.bus.write(regs.IRQ_ENABLE, pack(regs.Interrupts, **enabled))
        arbiter = pack(regs.Arbiter, mca=self._rng.randrange(2), fixed=1, threshold=20, starvation=30, quantum=4)
        await self.bus.write(regs.ARBITER, arbiter)

    async def rest(self, cycles: int) -> None:
        """Let the unit run."""
        await ClockCycles(self._clock, cycles)

    async def status(self) -> Fields:
        """STATUS."""
        return unpack(regs.Status, await self.bus.read(regs.STATUS))

    async def context(self, number: int) -> Fields:
        """CONTEXT of a context."""
        return unpack(ContextStatus, await self.bus.read(regs.CONTEXT + regs.CONTEXT_STRIDE * number))

    async def control(self, **fields: int) -> None:
        """A CONTROL write, repeated while maintenance or a quiesce refuses it."""
        deadline = self._machine.now + PATIENCE
        while not await self.bus.try_write(regs.CONTROL, pack(regs.Control, **fields)):
            assert self._machine.now < deadline, f"CONTROL {fields} is still refused after {PATIENCE:,} cycles"
            self.events["control refused while busy"] += 1
            await self.rest(7)

    async def work(self, context: int) -> None:
        """Job after job in this context."""
        while not self.stopping:
            self._number += 1
            job = self._jobs[context] = Job(self._config, context, self._number, self._rng)
            await self._program(job)
            if self._rng.random() < 0.15:
                await self._feed(job, self._rng.randrange(len(job.chunks)))
                await self._abort(job)
            else:
                await self._feed(job, len(job.chunks))
                await self._finish(job)
            self.events["jobs"] += 1

    async def _program(self, job: Job) -> None:
        for address, value in job.writes():
            await self.bus.write(address, value)
        credits = self._rng.choice((1, 2, regs.NO_CREDIT_LIMIT))
        quota = pack(regs.Quota, ways=self._rng.choice((1, 16)), slots=self._rng.choice((1, 2, 64)), credits=credits)
        await self.bus.write(regs.QUOTA + regs.QUOTA_STRIDE * job.context, quota)
        await self.control(arm=1, context=job.context, first=job.first, descriptors=job.count)
        await self._probe(job)

    async def _probe(self, job: Job) -> None:
        """What must be refused while the context is active. (With nothing to track it may be complete at once.)"""
        if self._rng.random() < 0.5 or not any(chunk.tracked for chunk in job.chunks):
            return
        await self.bus.refused(regs.RANGE + job.context * regs.RANGE_STRIDE, 0)
        await self.bus.refused(regs.QUOTA + regs.QUOTA_STRIDE * job.context, 0)
        await self.bus.refused(regs.DESCRIPTOR + job.first * regs.DESCRIPTOR_STRIDE, 0)
        await self.bus.refused(regs.PROFILE, 1)
        await self.bus.refused(regs.CONTROL, pack(regs.Control, arm=1, context=job.context, descriptors=1))
        await self.bus.refused(regs.STATUS)
        await self.bus.read_refused(regs.CONTROL)
        await self.bus.read_refused(regs.DESCRIPTOR - 8)
        self.events["locked"] += 1

    async def _feed(self, job: Job, chunks: int) -> None:
        """Send everything for the first chunks, each as soon as it is live."""
        for chunk in job.chunks[:chunks]:
            while (status := await self.context(job.context))["following"] <= chunk.descriptor:
                self._note(status)
                await self.rest(20)
            if self._rng.random() < 0.1:
                await self.rest(400)  # the watchdog asks
            for sent in job.updates(chunk) if chunk.tracked else ():
                self._machine.send(sent)
                self._machine.send(job.read())
            for _ in range(self._rng.randrange(6)):
                self._machine.send(job.store(chunk))
            if chunks == len(job.chunks) and self._rng.random() < 0.3:
                self._machine.send(self._rng.choice((job.foreign_write, job.improper_write))())
            if self._rng.random() < 0.2:
                self._machine.send(job.stale_update())

    def _note(self, status: Fields) -> None:
        self.events["waits for a slot"] += 1
        self.events["blocks wait"] += bool(status["ready"])

    async def _finish(self, job: Job) -> None:
        """Wait until the job is complete; every block has become a command by then, or is about to."""
        deadline = self._machine.now + PATIENCE
        while not (status := await self.context(job.context))["complete"] or self._machine.inside(job.context):
            assert self._machine.now < deadline, f"job of context {job.context} does not end: {status}, {job.missing()}"
            self._note(status)
            await self.rest(30)
        while job.missing():
            assert self._machine.now < deadline, f"blocks {job.missing()} never fired"
            await self.rest(10)
        self.events.update({f"blocks fired by {kind}": number for kind, number in job.kinds.items()})
        await self.rest(10)

    async def _abort(self, job: Job) -> None:
        """Drop the job. What has not reached the unit by then comes during the next one."""
        job.aborted = True
        self.events["abort with traffic"] += bool(self._machine.inside(job.context))
        await self.control(abort=1, context=job.context)
        while (await self.status())["abort_busy"]:
            await self.rest(20)
        self.events["arm with late traffic"] += bool(self._machine.inside(job.context))
        status = await self.context(job.context)
        assert not (status["armed"] or status["slots"] or status["ready"]), f"after an abort: {status}"
        self.events["aborts"] += 1
