"""Names of results: what changes one, what does not, and that nothing which changes a result is left out."""

from typing import Any

import pytest
import t3hdl
import t3sim
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import Workload, custom_workload, model_workload
from t3sim.study import sources
from t3sim.study.experiment import Experiment
from t3sim.study.sources import source_digest

SMALL = custom_workload(256, 200, 512, 4)


def experiment(policy: str = "t3-mca", workload: Workload = SMALL, **settings: Any) -> Experiment:
    overrides = {name.replace("__", "."): value for name, value in settings.items()}
    return Experiment(workload=workload, machine=load_machine("toy", overrides), policy=policy)


def test_models_and_sublayers_of_one_shape_share_a_result():
    named = [Workload(model="t-nlg", sublayer=name, tp=4, m=256, n=200, k=512) for name in ("fc1", "fc2")]
    assert {experiment(workload=work).key for work in (*named, SMALL)} == {experiment().key}


def test_the_name_and_the_sources_of_a_machine_do_not_count(tmp_path):
    (tmp_path / "mine.toml").write_text('base = "toy"\n[gpu]\ncus = { value = 4, unit = "CUs", source = "mine" }\n')
    machine = load_machine(tmp_path / "mine.toml")
    assert Experiment(workload=SMALL, machine=machine, policy="t3").key == experiment("t3").key


@pytest.mark.parametrize(
    "settings",
    [
        {"gpu__cus": 5}, {"llc__latency_ns": 101}, {"fabric__request_ns": 51}, {"hbm__nCL": 15},
        {"hbm__refresh": False}, {"link__gb_s": 21.0}, {"dma__buffer_kib": 512}, {"kernel__step_overhead_ns": 1},
        {"arbiter__starvation_quantum": 9}, {"hardware__tracker_sets": 16},
        {"variation__clock_scale": [1.0, 1.0, 1.0, 0.9]},
    ],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_every_value_of_the_machine_counts(settings):
    assert experiment(**settings).key != experiment().key


def test_everything_else_that_is_asked_counts():
    base = experiment()
    others = [
        experiment("t3"),
        experiment(workload=custom_workload(256, 208, 512, 4)),
        experiment(workload=custom_workload(256, 200, 513, 4)),
        experiment(workload=custom_workload(256, 200, 512, 2)),
        *(
            Experiment(workload=SMALL, machine=load_machine("toy"), policy="t3-mca", **{name: value})
            for name, value in (("seed", 1), ("mirror", False), ("hardware", "rtl"))
        ),
    ]
    assert len({item.key for item in (base, *others)}) == len(others) + 1


def test_a_policy_without_t3_hardware_runs_on_the_golden_model_only():
    machine = load_machine("toy")
    run = {
        hardware: Experiment(workload=SMALL, machine=machine, policy="sequential", hardware=hardware)
        for hardware in ("rtl", "golden")
    }
    assert run["rtl"].key == run["golden"].key
    assert run["rtl"].request().hardware == "golden"


def test_what_cannot_be_simulated_is_refused_at_once():
    with pytest.raises(ValueError, match="at least one"):
        experiment(workload=custom_workload(32, 32, 512, 4))


def test_larger_runs_are_expected_to_cost_more():
    def cost(model: str, mirror: bool) -> float:
        work = model_workload(model, "fc2", 8)
        return Experiment(workload=work, machine=load_machine(), policy="t3", mirror=mirror).cost

    assert cost("t-nlg", True) < cost("t-nlg", False) < cost("mt-nlg", False)


WITHOUT_T3 = {
    "arbiter.starvation_cycles": 7,
    "arbiter.threshold_under_25": 1,
    "dma.lines_per_cycle": 1,
    "dma.block": "tile",
}
UNREAD = {
    "sequential": WITHOUT_T3,
    "sequential-nmc": WITHOUT_T3,
    "sequential-pipelined": WITHOUT_T3,
    "t3": {"arbiter.starvation_cycles": 7, "arbiter.starvation_quantum": 1, "arbiter.threshold_under_25": 1},
}


@pytest.mark.parametrize("policy", UNREAD)
def test_values_that_do_not_count_for_a_policy_do_not_change_its_result(policy):
    from t3sim.run.simulate import simulate

    runs = [
        experiment(policy),
        experiment(policy, **{name.replace(".", "__"): v for name, v in UNREAD[policy].items()}),
    ]
    assert runs[0].key == runs[1].key
    assert runs[0].machine != runs[1].machine
    records = [simulate(run.request()).record.model_copy(update={"provenance": None}) for run in runs]
    assert records[0] == records[1]


def test_the_digest_does_not_read_the_packages_beside_ours(monkeypatch, tmp_path):
    """As in a wheel's environment, where NumPy lies beside the simulator."""
    for package in (t3sim, t3hdl):
        (tmp_path / package.__name__).symlink_to(next(iter(package.__path__)))
        monkeypatch.setattr(package, "__path__", [str(tmp_path / package.__name__)])
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy/__init__.py").write_text("this is no Python")
    there = source_digest.__wrapped__()
    monkeypatch.undo()
    assert there == source_digest.__wrapped__()


def test_the_digest_of_the_sources_covers_simulator_and_hardware_but_not_the_reports(monkeypatch):
    seen: list[str] = []
    code = sources._code

    def watch(path):
        seen.append(str(path))
        return code(path)

    monkeypatch.setattr(sources, "_code", watch)
    source_digest.cache_clear()
    source_digest()
    for part in (
        "t3sim/engine/llc.py",
        "t3sim/hardware/golden/slice/arbiter.py",
        "t3sim/hardware/rtl/backend.py",
        "t3hdl/tracker/tracker.py",
        "t3sim/run/plan.py",
    ):
        assert any(path.endswith(part) for path in seen), part
    assert not any(f"/t3sim/{room}/" in path for room in ("study", "pages", "cli") for path in seen)


def test_words_do_not_count_as_sources(tmp_path):
    texts = ('"""One."""\nX = 1  # why\n\ndef f():\n    """Two."""\n    return X\n', "X = 1\ndef f():\n    return X\n")
    codes = []
    for text in (*texts, "X = 2\ndef f():\n    return X\n"):
        (tmp_path / "module.py").write_text(text)
        codes.append(sources._code(tmp_path / "module.py"))
    assert codes[0] == codes[1] != codes[2]
