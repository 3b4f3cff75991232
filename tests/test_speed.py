"""The speed measurements run, and what they measure is far apart where it must be."""

from t3hdl.config import preset
from t3sim.golden.hardware import golden_hardware
from t3sim.rtl import compiled_part
from t3sim.speed import PartSpeed, Speeds, hbm_requests_per_second, part_speed, simulator_cycles_per_second


def test_compiled_part_is_far_faster_than_the_simulator(monkeypatch):
    monkeypatch.setattr("t3sim.speed.SECONDS", 0.02)
    config = preset("small")
    golden = golden_hardware(config)
    speed = part_speed(compiled_part(config, "slice"), golden.slice, 4, seed=1)
    golden.close()
    simulator = simulator_cycles_per_second(config, cycles=3, seed=1)
    assert min(speed.rtl_in_c, speed.rtl_in_numba, speed.golden_in_numba) > 100 * simulator > 0
    assert hbm_requests_per_second() > simulator


def test_ratios():
    """A unit of two slices and one tracker, with round numbers."""
    parts = [
        PartSpeed(name="slice", instances=2, rtl_in_c=8e6, rtl_in_numba=4e6, golden_in_numba=16e6),
        PartSpeed(name="tracker", instances=1, rtl_in_c=2e6, rtl_in_numba=2e6, golden_in_numba=2e6),
    ]
    speeds = Speeds(parts=parts, simulator=100.0, hbm_requests=2e6)
    assert speeds.unit == 1e6
    assert list(speeds.ratios().values()) == [1e4, 0.25, 0.5, 2.0]
