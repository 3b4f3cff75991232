"""Writes that several slices refuse in one cycle: all are counted, and the first one is named."""

import random

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op
from t3hdl.interface.words import unpack

from tests.contract.core.scene import BASE, CONFIG, CONTEXT, EPOCH, access, control, core, programme, request

PORTS = [f"{stream}_write.{number}" for number in range(CONFIG.slices) for stream in ("compute", "comm")]
"""In the order in which they are named: the lowest slice, compute before comm."""
SETS = 40
REFUSALS = regs.VIOLATION, regs.VIOLATIONS, regs.STALE_UPDATE, regs.STALE_UPDATES


@pytest.mark.parametrize(("wrong", "record", "count"), [
    ({"context": CONTEXT - 1}, regs.VIOLATION, regs.VIOLATIONS),
    ({"epoch": EPOCH + 1}, regs.STALE_UPDATE, regs.STALE_UPDATES),
])  # fmt: skip
@pytest.mark.parametrize("simulator", ["rtl"])
def test_the_first_of_several_refused_writes_is_named(simulator, wrong, record, count) -> None:
    bench, rng = core(simulator), random.Random(20261124)
    bench.until("init_done", 1000)
    for address, data in programme():
        if regs.RANGE <= address < regs.RANGE + regs.RANGE_STRIDE:
            request(bench, 1, address, data)
    pairs = [[PORTS[i], PORTS[i + 1]] for i in range(len(PORTS) - 1)]
    for ports in [PORTS, *pairs, *(rng.sample(PORTS, rng.randrange(1, len(PORTS))) for _ in range(SETS))]:
        for port in ports:
            item = access(BASE + PORTS.index(port), (0, 0, 0), Op.STORE, source=PORTS.index(port), **wrong)
            bench.send[port].append(item)
        bench.step(8)
        first = min(PORTS.index(port) for port in ports)
        named = unpack(regs.RefusalRecord, request(bench, 0, record))
        assert (
            named == {"valid": 1, "line": BASE + first, "source": first, "context": CONTEXT, "epoch": EPOCH} | wrong
        ), ports
        assert request(bench, 0, count) == len(ports), ports
        assert [request(bench, 0, other) for other in REFUSALS if other not in (record, count)] == [0, 0]
        control(bench, disarm=1)
        bench.until("init_done", 1000)
