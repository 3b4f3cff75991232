"""The speed measurements run, and what they measure is far apart where it must be."""

import numpy as np
from t3hdl.config import preset
from t3sim.hardware.rtl.backend import compiled_part
from t3sim.validation import hbm, speed
from t3sim.validation.bench import HBM_LOADS
from t3sim.validation.speed import HbmLoad, hbm_requests_per_second, part_speed, simulator_cycles_per_second


def test_compiled_part_is_far_faster_than_the_simulator(monkeypatch):
    monkeypatch.setattr(speed, "SECONDS", 0.02)
    config = preset("small")
    part = part_speed(config, "slice", seed=1)
    simulator = simulator_cycles_per_second(config, seed=1, cycles=3)
    assert min(part.in_c, part.in_numba) > 100 * simulator > 0
    assert hbm_requests_per_second(HbmLoad(trace="rw_random_75")) > simulator


def test_the_hbm_model_is_measured_on_updates_and_with_refresh(monkeypatch):
    """Loads differ in what the model does, so each one's speed is its own."""
    monkeypatch.setattr(speed, "SECONDS", 0.01)
    seen = {}

    def measured(load):
        def replay(parameters, trace, *, updates):
            seen[load] = (parameters.refresh, hbm.replay(parameters, trace, updates=updates))

        monkeypatch.setattr(speed, "replay", replay)
        return hbm_requests_per_second(load)

    assert all(measured(load) > 0 for load in HBM_LOADS)
    assert all(refresh is load.refresh for load, (refresh, _) in seen.items())
    assert len({cycles for _, cycles in seen.values()}) == len(HBM_LOADS) == 5
    assert HbmLoad(trace="a", updates=True, refresh=True).title == "a, updates for writes, refresh"


def test_stimulus_configures_nothing():
    """A configuration write at random would make the part do something untypical, for example disarm it."""
    part = compiled_part(preset("small"), "tracker").part_type
    vectors = speed._random_inputs(part, seed=1)
    valid = part.words.inputs["config_valid"][0]
    assert not vectors[:, valid].any()
    others = np.delete(vectors, valid, axis=1)
    assert (others != others[0]).any(axis=0).all(), "every other word changes"
