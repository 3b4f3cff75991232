"""The speed measurements run, and what they measure is far apart where it must be."""

import numpy as np
from t3hdl.config import preset
from t3sim.hardware.rtl.backend import compiled_part
from t3sim.validation import speed
from t3sim.validation.speed import hbm_requests_per_second, part_speed, simulator_cycles_per_second


def test_compiled_part_is_far_faster_than_the_simulator(monkeypatch):
    monkeypatch.setattr(speed, "SECONDS", 0.02)
    config = preset("small")
    part = part_speed(config, "slice", seed=1)
    simulator = simulator_cycles_per_second(config, seed=1, cycles=3)
    assert min(part.in_c, part.in_numba) > 100 * simulator > 0
    assert hbm_requests_per_second("rw_random_75") > simulator


def test_stimulus_configures_nothing():
    """A configuration write at random would make the part do something untypical, for example disarm it."""
    part = compiled_part(preset("small"), "tracker").part_type
    vectors = speed._random_inputs(part, seed=1)
    valid = part.words.inputs["config_valid"][0]
    assert not vectors[:, valid].any()
    others = np.delete(vectors, valid, axis=1)
    assert (others != others[0]).any(axis=0).all(), "every other word changes"
