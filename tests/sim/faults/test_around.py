"""Faults around tracker and trigger: what is seen of slices, network, registers and an NMC unit with a wrong bit."""

import random
from collections.abc import Iterator

import pytest
from t3hdl.config import preset
from t3hdl.export.single_event_upsets import stored_words
from t3hdl.export.verilog import PARTS
from t3hdl.interface import register_map as regs
from t3sim.faults.alone import Hit, observe_nmc, observe_registers
from t3sim.faults.around import AroundBench
from t3sim.faults.outcome import Outcome, judge
from t3sim.faults.streamed import jobs, observe_streams
from t3sim.faults.struck import AROUND, STRUCK
from t3sim.hardware.abi import LoadedHardware
from t3sim.hardware.backends import open_hardware
from t3sim.hardware.rtl.backend import rtl_hardware, upsettable_source
from t3sim.validation.memory_rate.streams import Strike

from tests.support.system_cases import missing_compiler

CONFIG = preset("small")
PROGRAM = [(regs.ARBITER, 5 << 8), (regs.RANGE_BASE, 64), (regs.RANGE_LIMIT, 128)]


@pytest.fixture(scope="module")
def upsettable() -> Iterator[LoadedHardware]:
    if missing_compiler():
        pytest.skip(missing_compiler())
    hardware = rtl_hardware(CONFIG, dict.fromkeys(STRUCK, upsettable_source))
    yield hardware
    hardware.close()


def valid_bits(part: str) -> list[int]:
    """The numbers of stored words that say whether something is there."""
    return [stored.number for stored in stored_words(PARTS[part](CONFIG)) if "valid" in stored.path]


def test_without_a_fault_all_is_right_in_both_hardwares() -> None:
    """Nothing is named, every line is counted, and every bench sees the same of the golden model twice."""
    hardware = open_hardware(CONFIG, "golden")
    streams, _ = observe_streams(hardware, None, None)
    assert judge(streams, streams) is Outcome.MASKED
    assert streams.counts[0][0] == sum(int(job.bursts()[:, 2].sum()) for job in jobs(CONFIG))
    registers, _ = observe_registers(hardware.parts["registers"], PROGRAM, None)
    nmc, _ = observe_nmc(hardware.parts["nmc"], CONFIG.dtypes, None)
    for seen, again in (
        (streams, observe_streams(hardware, None, None)[0]),
        (registers, observe_registers(hardware.parts["registers"], PROGRAM, None)[0]),
        (nmc, observe_nmc(hardware.parts["nmc"], CONFIG.dtypes, None)[0]),
    ):
        assert seen.completed and not seen.named and seen == again
    hardware.close()


@pytest.mark.slow
def test_every_part_is_struck_and_compared(upsettable: LoadedHardware) -> None:
    """Wrong bits that must show, and unstruck runs that are those of the golden model."""
    golden = open_hardware(CONFIG, "golden")
    right, cycles = observe_streams(golden, None, None)
    assert observe_streams(upsettable, None, None) == (right, cycles)
    for part in ("slice", "leaf", "root"):
        strikes = [
            Strike(part=part, instance=0, word=number, bit=0, cycle=cycle)
            for number in valid_bits(part)
            for cycle in range(40, 400, 40)
        ]
        seen = [judge(observe_streams(upsettable, strike, cycles)[0], right) for strike in strikes]
        assert strikes and set(seen) != {Outcome.MASKED}, part
    programmed, _ = observe_registers(golden.parts["registers"], PROGRAM, None)
    assert observe_registers(upsettable.parts["registers"], PROGRAM, None)[0] == programmed
    reduced, length = observe_nmc(golden.parts["nmc"], CONFIG.dtypes, None)
    assert observe_nmc(upsettable.parts["nmc"], CONFIG.dtypes, None) == (reduced, length)
    hits = [Hit(word=number, bit=0, cycle=cycle) for number in valid_bits("nmc") for cycle in range(10, 26)]
    seen = [judge(observe_nmc(upsettable.parts["nmc"], CONFIG.dtypes, hit)[0], reduced) for hit in hits]
    assert hits and set(seen) != {Outcome.MASKED}
    golden.close()


@pytest.mark.slow
def test_with_protection_every_wrong_bit_is_named() -> None:
    """Of the words without check bits: whatever else comes of it, ``uncorrectable`` is among what names it."""
    if missing_compiler():
        pytest.skip(missing_compiler())
    config, rng = preset("small", protect=True), random.Random("named")
    hardware = rtl_hardware(config, dict.fromkeys(STRUCK, upsettable_source))
    _, cycles = observe_streams(hardware, None, None)
    for part in STRUCK:
        words = [word for word in stored_words(PARTS[part](config)) if not word.checked]
        for word in rng.sample(words, 12):
            bit, cycle = rng.randrange(word.bits), rng.randrange(8, 24)  # while every bench runs
            if part in ("slice", "leaf", "root"):
                strike = Strike(part=part, instance=0, word=word.number, bit=bit, cycle=cycle)
                seen, _ = observe_streams(hardware, strike, cycles)
            else:
                hit = Hit(word=word.number, bit=bit, cycle=cycle)
                alone = hardware.parts[part]
                observed = (
                    observe_registers(alone, PROGRAM, hit)
                    if part == "registers"
                    else observe_nmc(alone, config.dtypes, hit)
                )
                seen, _ = observed
            assert "uncorrectable" in seen.named, (part, word, bit, cycle)
    hardware.close()


@pytest.mark.slow
def test_a_fault_is_drawn_by_its_number_alone() -> None:
    if missing_compiler():
        pytest.skip(missing_compiler())
    bench = AroundBench(CONFIG, PROGRAM)
    for kind in AROUND:
        first, *rest = [bench.run(kind, random.Random(f"0 {kind} {number}")) for number in range(12)]
        assert bench.run(kind, random.Random(f"0 {kind} 0")) == first
        assert len({where for _, where, _, _ in (first, *rest)}) == 12
