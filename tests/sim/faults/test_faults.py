"""Fault campaigns: what each fault does, how it is judged, and that a campaign can be repeated and goes on."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from t3hdl.interface import register_map as regs
from t3sim.cli.main import main
from t3sim.common.cache import BuildError
from t3sim.engine.t3unit.words import TRIGGER
from t3sim.faults import campaign
from t3sim.faults.bench import Bench, Verdict
from t3sim.faults.campaign import Journal, run_campaign
from t3sim.faults.classes import CLASSES, KINDS, FaultCase, jobs
from t3sim.faults.kinds import DRAWS, Drawn, upset
from t3sim.faults.links import link_fault
from t3sim.faults.outcome import Outcome, judge, observe
from t3sim.faults.report import Record, draw, fault_table, record_of
from t3sim.faults.setup import GPUS, FaultSetup, FaultSystem, Injection
from t3sim.faults.struck import AROUND
from t3sim.hardware.backends import open_hardware
from t3sim.inputs.machine.files import load_machine
from t3sim.run.request import SimulationError
from t3sim.run.simulate import simulate
from t3sim.study.workers import Task

from docs.pages import faults as page
from tests.support.system_cases import ODD, missing_compiler, request

PROTECTED, PLAIN = True, False


def _bench(protected: bool) -> Bench:
    return Bench(FaultSetup(protected, lambda config: open_hardware(config, "golden")))


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[bool, Bench]]:
    """The golden model: everything but upsets."""
    found = {protected: _bench(protected) for protected in (PROTECTED, PLAIN)}
    yield found
    for bench in found.values():
        bench.setup.hardware.close()


def _seen(bench: Bench, injection: Injection) -> tuple[Outcome, frozenset[str]]:
    seen = bench.observe(injection)
    return judge(seen, bench.right), seen.named


# The link


def test_retries_change_nothing_without_faults(benches: dict[bool, Bench]) -> None:
    assert benches[PROTECTED].right == benches[PLAIN].right
    plain, retried = (
        simulate(request(ODD, "t3-mca", {"link.retry": retry})).record.model_dump(exclude={"provenance"})
        for retry in (False, True)
    )
    assert plain == retried


@pytest.mark.parametrize("kind", ["lost", "repeated", "reordered"])
@pytest.mark.parametrize("place", [0.0, 0.4, 1.0])
def test_retries_make_the_link_exactly_once(benches: dict[bool, Bench], kind: str, place: float) -> None:
    bench = benches[PROTECTED]
    windows = bench.sites.windows[1]
    packets = max(windows)

    class Chosen(random.Random):
        def choice(self, found: Any) -> Any:
            return found[round(place * (len(found) - 1))]

    packet, watch = link_fault(kind, Chosen(), 1, windows)
    assert place < 1 or packet >= packets - 2  # the last one, which no later one reveals
    system = bench.setup.run(Injection(watch=watch))
    seen = observe(system)
    sender, receiver = system.gpus[1].link, system.gpus[0].link
    assert judge(seen, bench.right) is Outcome.CORRECTED
    assert receiver["packets_taken"] == sender["packets_sent"] == sender["packets_acknowledged"] == packets
    assert (receiver["packets_dropped"] > 0) == (kind == "repeated" or place < 1 or kind == "reordered")
    assert (sender["packets_resent"] > 0) == (kind != "repeated")
    bench.setup.hardware.close()


def test_without_retries_a_lost_update_is_named_by_the_watchdog_and_a_repeated_one_is_not_right(
    benches: dict[bool, Bench],
) -> None:
    bench = benches[PLAIN]
    ends = {kind: [bench.run(kind, number, 7) for number in range(12)] for kind in ("lost", "repeated", "reordered")}
    assert {verdict.outcome for verdict in ends["lost"]} <= {Outcome.DETECTED, Outcome.HANG}
    assert any(verdict.named == ("watchdog",) for verdict in ends["lost"])
    assert any(verdict.outcome is not Outcome.MASKED for verdict in ends["repeated"])
    assert {verdict.outcome for verdict in ends["reordered"]} == {Outcome.MASKED}


@pytest.mark.parametrize("settings", [{"link.retry_timeout_ns": 1000}, {"link.latency_ns": 800}])
def test_a_timeout_within_a_round_trip_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="retry_timeout_ns must be above a round trip"):
        load_machine("toy", {"link.retry": True, **settings})
    load_machine("toy", settings)


def test_a_mirrored_gpu_has_no_neighbour_that_answers() -> None:
    with pytest.raises(ValueError, match=r"link\.retry"):
        simulate(request((256, 256, 512, 4), "t3", {"link.retry": True}, mirror=True))


# The other classes


def test_a_stalled_dma_engine_is_late_or_named(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]
    ends = {number: bench.run("dma", number, 0) for number in range(14)}
    for verdict in ends.values():
        assert verdict.outcome in (Outcome.MASKED, Outcome.DETECTED)
    assert {verdict.named for verdict in ends.values()} == {(), ("watchdog",)}


def test_a_slow_gpu_does_no_harm_and_a_dead_one_is_named(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]
    ends = [bench.run("straggler", number, 0) for number in range(12)]
    assert {verdict.outcome for verdict in ends} <= {Outcome.MASKED, Outcome.DETECTED}
    dead = [verdict for verdict in ends if "never starts" in verdict.text]
    assert dead and {verdict.named for verdict in dead} == {("watchdog",)}


def test_only_a_straggler_is_not_judged_by_how_full_tables_got(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]
    # GPU 0's stores come in another order, no chunk of it overflows, so more tiles are counted; all end as without it.
    assert bench.run("straggler", 218, 0).outcome is Outcome.MASKED
    (first, *rest) = bench.right.statistics
    fuller = replace(bench.right, statistics=((*first[:-1], first[-1] + 1), *rest))
    assert judge(fuller, bench.right, retimed=True) is Outcome.MASKED
    assert judge(fuller, bench.right) is Outcome.SILENT
    retimed = {kind for kind in set(DRAWS) - {"bits"} if _drawn(bench, kind).injection.retimed}
    assert retimed == {"straggler"}
    for name in ("result", "commands", "counts"):
        wrong = replace(bench.right, **{name: getattr(bench.right, name)[1:]})
        assert judge(wrong, bench.right, retimed=True) is Outcome.SILENT


def _drawn(bench: Bench, kind: str) -> Drawn:
    return DRAWS[kind](random.Random(0), bench.setup, bench.sites)


def test_a_foreign_store_is_refused_and_changes_nothing(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]
    for number in range(6):
        drawn = DRAWS["foreign"](random.Random(number), bench.setup, bench.sites)
        seen = bench.observe(drawn.injection)
        assert seen.named == {"violation"}
        assert (seen.result, seen.commands, seen.counts) == (
            bench.right.result,
            bench.right.commands,
            bench.right.counts,
        )


def _with(bench: Bench, address: int, value: int) -> tuple[Outcome, frozenset[str]]:
    """GPU 0 with one register programmed otherwise."""

    def alter(number: int, driver: Any) -> None:
        if number == 0:
            driver.writes = [(at, value if at == address else old) for at, old in driver.writes]

    return _seen(bench, Injection(alter=alter))


def test_a_dma_command_that_leaves_the_buffer_is_refused_and_named(benches: dict[bool, Bench]) -> None:
    outcome, named = _with(benches[PROTECTED], regs.DESCRIPTOR_TARGET + regs.DESCRIPTOR_STRIDE, 1 << 30)
    assert (outcome, "dma address" in named) == (Outcome.DETECTED, True)


def test_a_register_may_be_written_with_its_highest_bit(benches: dict[bool, Bench]) -> None:
    top = regs.DESCRIPTOR_TILES + regs.DESCRIPTOR_STRIDE
    assert _with(benches[PROTECTED], top, 1 << 63)[0] is Outcome.DETECTED


def test_a_chunk_that_is_complete_too_early_is_premature(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]

    def early(system: FaultSystem) -> None:
        gpu = system.gpus[0]
        gpu.words[gpu.words[2 * TRIGGER + 1] + gpu.at["trigger_done_mask"]] |= 0xFF

    seen = bench.observe(Injection(events=tuple((at, early) for at in range(1200, 3000, 50))))
    assert seen.premature
    assert judge(seen, bench.right) is Outcome.SILENT


def test_a_simulation_with_an_early_chunk_or_a_bad_command_fails() -> None:
    for model, field in (("own", "premature"), ("dma", "bad_commands")):
        setup = FaultSetup(PLAIN, lambda config: open_hardware(config, "golden"))
        system = FaultSystem(setup.plan, setup.hardware)
        system.program()
        getattr(system.gpus[1], model)[field] = 1
        with pytest.raises(SimulationError, match="GPU 1"):
            list(system.run(1))
        setup.hardware.close()


# The campaign


def test_a_fault_depends_on_seed_kind_and_number_alone(benches: dict[bool, Bench]) -> None:
    bench = benches[PROTECTED]
    first = bench.run("lost", 3, 5)
    bench.run("dma", 0, 5)
    assert bench.run("lost", 3, 5) == first
    assert len({bench.run("lost", number, 5).text for number in range(4)}) == 4
    assert {*jobs(100, tuple(CLASSES), (True,))} < {*jobs(900, tuple(CLASSES), (True,))}


def test_shares_add_up_and_every_kind_is_there() -> None:
    todo = jobs(12_000, tuple(CLASSES), (True, False))
    assert 13_190 <= len(todo) <= 13_210
    model = [job for job in todo if job.protected and job.kind in ("bits", "lost", "repeated", "reordered")]
    assert len(model) >= 10_000
    assert {job.kind for job in jobs(1, tuple(CLASSES), (True,))} == set(KINDS) == {*DRAWS, *AROUND}
    assert len(jobs(300, ("link",), (False,))) == 30


def _verdict(job: FaultCase) -> Verdict:
    outcome = list(Outcome)[job.number % 5]
    label = {"bits": "bit of the tracker"}.get(job.kind, f"{job.kind} packet")
    return Verdict(job.kind, job.number, label, f"fault {job.number}", outcome, ("watchdog",) if outcome else ())


@pytest.fixture
def fake_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[FaultCase]:
    """Runs in this process, with verdicts out of nothing; the list tells which."""
    ran: list[FaultCase] = []

    def work(protected: bool, batch: list[FaultCase], seed: int) -> dict[FaultCase, Verdict]:
        ran.extend(batch)
        if len(ran) > 60:
            raise KeyboardInterrupt
        return {job: _verdict(job) for job in batch}

    class Here:
        @staticmethod
        def results(tasks: list[Task]) -> Iterator[tuple[Task, object]]:
            for task in tasks:
                yield task, task.function(*task.arguments)

    @contextmanager
    def here(jobs: int, scheduler: str | None, program: str) -> Iterator[Here]:
        yield Here()

    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path))
    monkeypatch.setattr(campaign, "workers", here)
    monkeypatch.setattr(campaign, "_work", work)
    monkeypatch.setattr(campaign, "source_digest", lambda program: "sources")
    return ran


def test_an_interrupted_campaign_goes_on(fake_work: list[FaultCase]) -> None:
    todo = jobs(100, ("bits",), (True,))
    with pytest.raises(KeyboardInterrupt):
        run_campaign(todo, 0, 1, lambda done: None)
    known = set(Journal(0).known)
    assert 0 < len(known) < 100
    with Journal(0).path.open("a") as file:
        file.write('{"job": {"prot')  # as when the power went
    fake_work.clear()
    told: list[int] = []
    found = run_campaign(todo, 0, 1, told.append)
    assert not known & set(fake_work)
    assert list(found) == todo and found == {job: _verdict(job) for job in todo}
    assert (told[0], told[-1]) == (len(known), 100)
    assert set(Journal(0).known) == set(todo), "what follows a cut-off line is read again"
    assert Journal(1).known == {}


@pytest.mark.parametrize("line", ["no JSON", "{}", '{"job": {"kind": "bits"}, "verdict": 3}'])
def test_a_damaged_journal_is_one_message(fake_work: list[FaultCase], line: str) -> None:
    run_campaign(jobs(1, ("link",), (True,)), 5, 1, lambda done: None)
    with Journal(5).path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(BuildError, match=r"line \d+ of .*-5.jsonl is damaged: move the file away"):
        Journal(5)


def test_the_record_counts_and_names(tmp_path: Path) -> None:
    found = {job: _verdict(job) for job in jobs(180, ("bits", "link"), (True, False))}
    record = record_of(0, found)
    assert sum(row.faults for row in record.rows) == len(found)
    assert all(sum(row.outcomes.values()) == row.faults for row in record.rows)
    assert record.model_faults == 180
    assert len(record.broken) == sum(job.protected and job.number % 5 >= 3 for job in found)
    assert Record(**json.loads(record.model_dump_json(by_alias=True))) == record
    draw(record, tmp_path / "faults")
    assert {path.name for path in tmp_path.iterdir()} == {"faults.png", "faults.svg"}
    assert fault_table(record).row_count == len(record.rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--classes", "bits,moon"], "--classes must be some of bits, link"),
        (["--classes", "bits,bits"], "each once"),
        (["--repeat", "moon:1"], "--repeat must be KIND:NUMBER"),
        (["--repeat", "lost"], "--repeat must be KIND:NUMBER"),
        (["--out", __file__], "--out must be a"),
    ],
)
def test_wrong_options_are_refused_in_a_line(options: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["faults", *options])
    assert (result.exit_code, message in result.output, "Traceback" in result.output) == (2, True, False)


def test_the_kept_campaign_is_complete_and_nothing_protected_was_silent() -> None:
    record = page.read(page.KEPT)
    assert record.model_faults >= 10_000
    assert record.broken == []


@pytest.fixture(scope="module")
def compiled() -> Callable[[], Bench]:
    if missing_compiler():
        pytest.skip(missing_compiler())
    return lambda: Bench(FaultSetup(PROTECTED))


@pytest.mark.slow
def test_upsets_of_the_compiled_hardware(compiled: Callable[[], Bench]) -> None:
    bench = compiled()
    golden = _bench(PROTECTED)
    assert bench.right == golden.right
    ends = [bench.run("bits", number, 99) for number in range(120)]
    assert {verdict.outcome for verdict in ends} == {Outcome.MASKED, Outcome.CORRECTED, Outcome.DETECTED}
    word = next(word for word in bench.sites.stored["trigger"] if word.path.endswith("contexts.context_0"))
    for gpu in range(GPUS):
        for bit in range(0, word.bits, 9):
            injection = Injection(events=((2000, partial(upset, bench.setup, gpu, "trigger", word.number, bit)),))
            assert _seen(bench, injection) == (Outcome.CORRECTED, frozenset())


@pytest.mark.slow
def test_the_campaign_does_not_depend_on_its_workers(tmp_path: Path) -> None:
    if missing_compiler():
        pytest.skip(missing_compiler())
    texts = []
    for number in (1, 2):
        out = tmp_path / f"out{number}"
        (tmp_path / f"cache{number}").mkdir()
        for kept in Path(campaign.cache_folder()).glob("*"):
            if kept.name != "faults":
                (tmp_path / f"cache{number}" / kept.name).symlink_to(kept)
        result = CliRunner().invoke(
            main,
            ["faults", "--faults", "24", "--jobs", str(number), "--out", str(out)],
            env={"OPENT3_CACHE": str(tmp_path / f"cache{number}")},
        )
        assert result.exit_code == 0, result.output
        texts.append((out / "faults.json").read_text())
    assert texts[0] == texts[1]
