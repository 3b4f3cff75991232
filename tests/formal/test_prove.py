"""The proof tools themselves, on the smallest part: what they find, refuse and print."""

import contextlib
import json
import re
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner
from t3formal.prover import netlist
from t3formal.prover.catalogue import all_proofs, chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.harness import Harness
from t3formal.prover.proof import Proof, Task
from t3formal.prover.run import prove, tasks
from t3hdl.common.ram import Ram
from t3hdl.config import PRESETS
from t3sim.cli.main import main

SMALL = PRESETS["small"]


class Counter(wiring.Component):
    """Counts pulses up to 5; a row of a memory that nobody has written says what comes after."""

    count: In(1)
    value: Out(3)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.count & (self.value != 5)):
            m.d.sync += self.value.eq(self.value + 1)
        return m


def counter_proof(claim, *, cover=lambda harness: harness.dut.value == 3, **parameters):
    def make(config):
        harness = Harness(Counter())
        harness.claim("claimed", claim(harness))
        harness.cover("covered", cover(harness))
        return harness

    parameters = {"name": "counter.test", "invariants": (), "says": "A test.", "sizes": {"small": SMALL}, **parameters}
    return Task(proof=Proof(harness=make, **parameters), size="small")


@pytest.mark.parametrize("method", ["unbounded", "induction", "bounded"])
def test_a_true_claim_is_proven_and_its_cover_reached(method):
    verdict = check(counter_proof(lambda harness: harness.dut.value <= 5, method=method, depth=5))
    assert (verdict.outcome, verdict.covers) == ("proven", {"covered": 4})


@pytest.mark.parametrize("method", ["unbounded", "induction", "bounded"])
def test_a_false_claim_gives_the_shortest_run_and_its_waveforms(method, tmp_path):
    verdict = check(counter_proof(lambda harness: harness.dut.value <= 3, method=method, depth=8), tmp_path)
    assert (verdict.outcome, verdict.frames) == ("violated", 5)
    assert verdict.counterexample.claims == ("claimed",)
    assert [line.split() for line in verdict.counterexample.events if "value" in line][-1] == ["4", "value", "4"]
    assert "$enddefinitions" in verdict.counterexample.waves.read_text()


def test_a_bounded_search_does_not_look_further():
    """The counter needs five cycles to come to 4."""
    outcomes = [
        check(counter_proof(lambda harness: harness.dut.value <= 3, method="bounded", depth=depth)).outcome
        for depth in (4, 5)
    ]
    assert outcomes == ["proven", "violated"]


def test_a_claim_that_needs_an_invariant_is_not_inductive():
    """From 7, which is never reached, the counter goes on to 0."""

    def decreased(harness):
        return harness.past(harness.dut.value) <= harness.dut.value

    assert check(counter_proof(decreased, method="induction", depth=1)).outcome == "not inductive"
    assert check(counter_proof(decreased)).outcome == "proven"


def test_a_cover_out_of_reach_makes_a_proof_vacuous():
    verdict = check(counter_proof(lambda harness: harness.dut.value <= 5, cover=lambda harness: harness.dut.value == 6))
    assert (verdict.outcome, verdict.covers) == ("vacuous", {"covered": None})


def test_assumptions_and_choices_bind_every_cycle():
    def make(config):
        harness = Harness(Counter())
        stopped = harness.chosen("stopped")
        harness.assume("it is not counted while stopped", ~(stopped & harness.dut.count))
        harness.claim("stays 0 when stopped", ~stopped | (harness.dut.value == 0))
        harness.cover("counts otherwise", harness.dut.value == 5)
        return harness

    proof = Proof(name="counter.choice", invariants=(), says="", harness=make, sizes={"small": SMALL})
    verdict = check(Task(proof=proof, size="small"))
    assert (verdict.outcome, verdict.assumptions) == ("proven", ("it is not counted while stopped",))


class Reader(wiring.Component):
    """Reads a memory of two rows; 1 can be written into the first of them."""

    write: In(1)
    row: In(1)
    word: Out(2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = Ram(2, depth=2)
        m.d.comb += [ram.read.eq(1), ram.read_row.eq(self.row), self.word.eq(ram.data)]
        m.d.comb += [ram.write.eq(self.write), ram.write_data.eq(1)]
        return m


@pytest.mark.parametrize("row", [0, 1])
def test_memories_begin_with_anything(row):
    def make(config):
        harness = Harness(Reader())
        harness.claim("no word is 3", (harness.dut.word != 3) | (harness.past(harness.dut.row, 1 - row) != row))
        harness.cover("some word is 2", harness.dut.word == 2)
        return harness

    proof = Proof(name="reader.memory", invariants=(), says="", harness=make, sizes={"small": SMALL})
    verdict = check(Task(proof=proof, size="small"))
    assert (verdict.outcome, verdict.frames) == ("violated", 2)
    assert any(line.split() == ["1", "word", "3"] for line in verdict.counterexample.events)


def test_a_harness_without_claim_or_cover_is_refused():
    silent = replace(counter_proof(lambda harness: 1).proof, harness=lambda config: Harness(Counter()))
    with pytest.raises(ValueError, match="must have a claim and a cover"):
        check(Task(proof=silent, size="small"))


def test_every_proof_has_a_quick_size_its_sentence_and_known_invariants():
    for proof in all_proofs():
        assert proof.sizes and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*", proof.name), proof.name
        assert proof.says.endswith(".") and set(proof.invariants) <= set(range(1, 11)), proof.name


def test_a_token_queue_that_counts_in_a_free_entry_is_found():
    """Seeded: an entry takes an update also when it is the first free one, where nobody ever looks."""

    def patch(text):
        changed, number = re.subn(r"cell \$gt (\$\d+)((?:\n {4}.*)*?\n {4}connect \\A \\level)", r"cell $ge \1\2", text)
        assert number >= 2
        return changed

    (proof,) = chosen_proofs(("token-queue.conserves",))
    verdict = check(Task(proof=proof, size="3 entries"), patch=patch, covers=False)
    assert verdict.outcome == "violated"
    found = set(verdict.counterexample.claims)
    assert found & {
        "lines of a tile are in the queue or have left it",
        "entries 1 and 2 are of two tiles, or the older one is full",
    }


def run(*arguments):
    return CliRunner().invoke(main, ["prove", *arguments])


def test_the_command_writes_record_and_times(tmp_path):
    out = tmp_path / "proofs"
    result = run("token-queue", "--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "token-queue.conserves" in result.stdout and "proven" in result.stdout
    (row,) = json.loads((out / "proofs.json").read_text())["proofs"]
    assert row["outcome"] == "proven" and row["assumptions"] == ["a token queue is pushed only with room"]
    assert set(json.loads((out / "timing.json").read_text())["tasks"]) == {"token-queue.conserves (3 entries)"}


def test_an_unknown_name_is_one_message():
    result = run("token-cue")
    assert result.exit_code == 2
    assert "there is no proof or component called 'token-cue'" in result.stderr


def test_without_yosys_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(netlist.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(netlist.ToolError, match="pip install 'opent3\\[prove\\]'"):
        check(counter_proof(lambda harness: harness.dut.value <= 5))


def test_the_list_proves_nothing():
    result = run("--list", "token-queue")
    assert result.exit_code == 0 and "Every line of every burst that is pushed" in " ".join(result.stdout.split())


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("")
    result = run("token-queue", "--out", str(tmp_path))
    assert result.exit_code == 2 and list(tmp_path.iterdir()) == [tmp_path / "precious"]


@pytest.mark.long
def test_a_run_that_is_ended_leaves_no_program_behind(tmp_path):
    """Whoever ends ``t3 prove`` also ends its workers and their ABC, which may have long to go."""
    command = [sys.executable, "-m", "t3sim.cli.main", "prove", "trigger.as-naive", "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True) as process:
        wait_until(lambda: any("pyosys" in line for line in session(process.pid)))
        process.terminate()
        assert process.wait(30) == 130
    wait_until(lambda: not session(process.pid))


def test_a_worker_that_is_killed_is_one_message(monkeypatch):
    """As by a kernel that runs out of memory."""

    def killed(future, timeout=None):
        raise BrokenProcessPool("a process was terminated abruptly")

    monkeypatch.setattr(Future, "result", killed)
    with pytest.raises(netlist.ToolError, match="a proof's process was killed.*use fewer --jobs"):
        list(prove(tasks(chosen_proofs(["token-queue"]), quick=True), workers=1))


def session(leader):
    """Command lines of the processes of a session."""
    lines = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # not a process, or one that has ended
            state, _, _, number = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(number) == leader and state != "Z":
                lines.append((entry / "cmdline").read_text())
    return lines


def wait_until(condition, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)
