"""A result says what it is of: settings and digests tell machines apart that have one name, and only those."""

from pathlib import Path

import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.provenance import Provenance
from t3sim.run.simulate import simulate
from t3sim.study.experiment import Experiment
from t3sim.study.store import Outcome, Store

from tests.support.system_cases import BASE, request


def of(folder: Path, text: str) -> Provenance:
    folder.mkdir()
    (folder / "mine.toml").write_text(text)
    return Provenance.of(load_machine(folder / "mine.toml"))


def test_files_of_one_name_differ_by_digest(tmp_path: Path):
    slow = of(tmp_path / "a", 'base = "toy"\n[link]\ngb_s = 5\n')
    fast = of(tmp_path / "b", 'base = "toy"\n[link]\ngb_s = 6\n')
    assert slow.machine != fast.machine
    assert (slow.hardware, slow.sources, slow.settings) == (fast.hardware, fast.sources, {})


def test_equal_values_have_equal_digests(tmp_path: Path):
    """Whichever file, setting or source they come from; integers and decimals alike."""
    written = of(tmp_path / "a", 'base = "toy"\n[link]\ngb_s = { value = 5.0, unit = "GB/s", source = "my board" }\n')
    typed = Provenance.of(load_machine("toy", {"link.gb_s": 5}))
    assert written.machine == typed.machine
    assert typed.settings == {"link.gb_s": 5}


@pytest.mark.parametrize(
    ("setting", "value", "differs"),
    [
        ("gpu.tiles", [[64, 64]], "machine"),
        ("variation.start_skew_ns", [0.0, 1.0, 2.0, 3.0], "machine"),
        ("hardware.tracker_sets", 8, "hardware"),
    ],
)
def test_each_setting_shows(setting, value, differs):
    plain, changed = (Provenance.of(load_machine("toy", chosen)) for chosen in ({}, {setting: value}))
    assert {name for name in ("machine", "hardware", "sources") if getattr(plain, name) != getattr(changed, name)} == {
        differs
    }
    assert changed.model_dump(mode="json")["settings"] == {setting: value}


def test_a_run_that_is_kept_is_of_the_machine_that_was_asked_for(tmp_path: Path):
    """Also where it differs from the one that was simulated, in what the policy does not use."""
    store = Store(tmp_path)
    plain, other = (
        Experiment(workload=custom_workload(256, 256, 512, 4), machine=load_machine("toy", chosen), policy="sequential")
        for chosen in ({}, {"dma.buffer_kib": 7, "link.gb_s": 20})
    )
    store.put(plain, Outcome.of(plain.label, simulate(plain.request())))
    found = store.get(other)
    assert found is not None and found.record.provenance == Provenance.of(other.machine)


def test_it_stands_in_the_result():
    asked = request(BASE, "t3", {"link.gb_s": 33})
    record = simulate(asked).record
    assert record.provenance == Provenance.of(asked.machine)
    assert record.provenance.settings == {"link.gb_s": 33}
