"""Mistakes that were made, or are easily made, in the hardware: a quick check, which is named, finds each of them."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from t3hdl import core
from t3hdl.common import linked, secded
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.registers.barred_epochs import BarredEpochs
from t3hdl.registers.registers import ControlRegisters
from t3hdl.slice import arbiter, monitor
from t3hdl.slice.slice import MemorySlice
from t3hdl.tracker.open_tiles import OpenTiles
from t3hdl.tracker.tile_profile import TileProfile
from t3hdl.tracker.tracker import Tracker
from t3hdl.trigger.command_counters import CommandCounters
from t3hdl.trigger.trigger import Trigger

from tests.contract import backends
from tests.contract.core.scene import CONTEXT
from tests.formal.seeded_bugs import expect_failure
from tests.support.seeded_mistakes import seed


@dataclass(frozen=True)
class Mistake:
    """``old`` is replaced by ``new`` in a function. ``check`` : the quick check that finds it, as ``module:test``, and
    its arguments. ``proof`` : one that finds it, too, and the claims of which it breaks one."""

    function: Any
    old: str
    new: str
    check: str
    arguments: dict[str, Any] = field(default_factory=lambda: {"backend": "amaranth"})
    proof: tuple[str, ...] = ()

    def run(self) -> None:
        """The quick check."""
        module, name = self.check.split(":")
        getattr(importlib.import_module(f"tests.{module}"), name)(**self.arguments)


_ARBITER, _MONITOR = "contract.slice.test_slice_arbiter", "contract.monitor.test_monitor"
_CONTEXTS, _PLAIN = "contract.trigger.test_trigger_contexts", {"backend": "amaranth"}
_BEHIND = (
    "monitor.chooses",
    "communication is behind when as many blocks waited a cycle ago, or some for as long as they may, or by choice",
)
_EPOCHS = (
    "the epochs that context 0 may not have", "the epochs that context 1 may not have",
    "an error: a range in use with the epoch of a job of its context that did not end",
)  # fmt: skip
MISTAKES = {
    # When communication is behind, and what then holds.
    "behind by more than the limit": Mistake(
        monitor.OccupancyMonitor._watch, ">= thresholds.backlog", "> thresholds.backlog",
        f"{_MONITOR}:test_behind_from_as_many_blocks_as_the_limit_a_cycle_later", proof=_BEHIND,
    ),
    "behind without a limit": Mistake(
        monitor.OccupancyMonitor._watch, "(thresholds.backlog != 0) & ", "",
        f"{_MONITOR}:test_never_behind_without_a_limit", proof=_BEHIND,
    ),
    "behind for ever": Mistake(
        monitor.OccupancyMonitor._watch, "many.eq((thresholds", "many.eq(many | (thresholds",
        f"{_MONITOR}:test_behind_from_as_many_blocks_as_the_limit_a_cycle_later", proof=_BEHIND,
    ),
    "behind by the low bits of the backlog": Mistake(
        monitor.OccupancyMonitor._watch, "(self.backlog >= ", "(self.backlog[:16] >= ",
        f"{_MONITOR}:test_behind_from_as_many_blocks_as_the_limit_a_cycle_later", proof=_BEHIND,
    ),
    "compute first while communication is behind": Mistake(
        arbiter.StreamArbiter.elaborate, "self.settings.mca & ~self.behind", "self.settings.mca",
        f"{_ARBITER}:test_mca_while_communication_is_behind_the_streams_take_turns",
        proof=(
            "slice.keeps-to-limit", "the stopwatch is the slice's", "the allowance is the slice's",
            "it goes below its limit when compute has nothing", "round-robin leaves no turn out",
        ),
    ),
    "a wait goes on while communication is behind": Mistake(
        arbiter.StreamArbiter.elaborate, "self._starvation(m, mca, ", "self._starvation(m, self.settings.mca, ",
        f"{_ARBITER}:test_a_wait_begins_anew_when_communication_is_no_longer_behind",
        proof=("slice.keeps-to-limit", "the stopwatch is the slice's", "the allowance is the slice's"),
    ),
    "patience of a cycle too much": Mistake(
        arbiter.wait_limit_of, "starvation - 1", "starvation",
        f"{_ARBITER}:test_mca_starving_communication_goes_after_its_wait",
        {**_PLAIN, "starvation": 7, "seen": 10, "wait": 7},
        proof=("slice.keeps-to-limit", "the settings are those last written"),
    ),
    "patience of no cycle is as long as there is": Mistake(
        arbiter.wait_limit_of, "Mux(starvation == 0, 0, starvation - 1)", "(starvation - 1)",
        f"{_ARBITER}:test_mca_starving_communication_goes_after_its_wait",
        {**_PLAIN, "starvation": 0, "seen": 10, "wait": 1},
        proof=("slice.keeps-to-limit", "the settings are those last written"),
    ),
    "a backlog without the commands under way": Mistake(
        CommandCounters.elaborate, "total + sum(self.outstanding)", "total", f"{_CONTEXTS}:test_counters_of_commands"
    ),
    "a backlog of one context's commands": Mistake(
        CommandCounters.elaborate, "sum(self.outstanding)", "self.outstanding[0]",
        f"{_CONTEXTS}:test_commands_of_two_contexts_leave_in_turns_each_oldest_first",
    ),
    "a backlog of one context's blocks": Mistake(
        CommandCounters.elaborate, "sum(self.ready)", "self.ready[0]",
        f"{_CONTEXTS}:test_commands_of_two_contexts_leave_in_turns_each_oldest_first",
    ),
    "idle although the backlog changes": Mistake(
        Trigger._show, "self.idle.eq(rests & settled)", "self.idle.eq(rests)",
        f"{_CONTEXTS}:test_what_is_under_way_ends_before_quiet",
    ),
    "quiet although commands are under way": Mistake(
        Trigger._show, "& ~contexts.working", "", f"{_CONTEXTS}:test_what_is_under_way_ends_before_quiet"
    ),
    "quiet without quiesce": Mistake(
        Trigger._show, "self.quiesced & loader.waits & ~loader.load_valid &", "loader.waits & ~loader.load_valid &",
        f"{_CONTEXTS}:test_quiesce_holds_chunks_and_commands_and_counts_on",
    ),
    # Of the unit and its parts.
    "the last of several refused writes is named": Mistake(
        linked._first, "reversed(link.sources)", "link.sources",
        "contract.core.test_core_violations:test_the_first_of_several_refused_writes_is_named",
        {
            "simulator": "amaranth", "wrong": {"context": CONTEXT - 1}, "record": regs.VIOLATION,
            "count": regs.VIOLATIONS,
        },
    ),
    "updates of the first two banks alone": Mistake(
        Tracker._report, "bank.amount, 0) for bank in banks)", "bank.amount, 0) for bank in banks[:2])",
        "contract.tracker.test_tracker:test_updates_count_the_lines_of_every_bank_in_one_cycle",
        {**_PLAIN, "sizes": {"tracker_sets": 16, "tracker_banks": 4, "row_index_bits": 2, "blocks": 16}},
    ),
    "the earliest deadline by its low bits": Mistake(
        core._earliest, "Mux(a < b, a, b)", "Mux(a[:32] < b[:32], a, b)",
        "hdl.test_core_deadlines:test_the_earliest_of_some_times", {"count": 3},
    ),
    "a unit that sleeps through the monitor's deadline": Mistake(
        core.T3Core._connect_idle, "tracker, trigger, self._monitor)]", "tracker, trigger)]",
        "contract.core.test_core_wakes:test_it_wakes_when_a_command_has_waited_for_as_long_as_it_may", {},
    ),
    "a network that keeps its tokens over a disarm": Mistake(
        core.T3Core.elaborate, "ResetInserter(disarm)(self._network)", "self._network",
        "contract.core.test_core:test_latency_and_second_run", {"simulator": "amaranth"},
    ),
    "data bit 64 is not corrected": Mistake(
        secded.decode, "Cat(syndrome == column for column in columns)",
        "Cat((syndrome == column) & (place != 64) for place, column in enumerate(columns))",
        "hdl.common.test_secded:test_single_errors_are_corrected_and_double_errors_found", {"width": 65},
        proof=("blocks.secded-120", "up to one wrong bit is corrected", "one wrong bit is reported"),
    ),
    "a transfer beside a report is not outstanding": Mistake(
        MemorySlice._count, "Mux(accepted == push, outstanding, Mux(accepted,",
        "Mux(~accepted & ~push, outstanding, Mux(accepted & ~push,",
        "contract.slice.test_slice_counts:test_performed_counts_a_report_and_a_transfer_of_one_cycle",
        proof=("slice.pending", "the slice waits for as many reports as come"),
    ),
    "the profile's parity changes with every write": Mistake(
        TileProfile.elaborate, "write & ~written.bit_select(row, 1)", "write",
        "hdl.test_tile_profile:test_writing_again_is_no_damage", {"protect": True},
    ),
    "slots are free one event too early": Mistake(
        T3Config.stale_cycles, "self.event_queue + 2", "self.event_queue + 1",
        "hdl.test_slot_reuse:test_blocks_give_the_tracker_time_to_count_old_events", {"event_queue": 5, "banks": 2},
    ),
    "slots are free when the banks' queues alone are empty": Mistake(
        T3Config.stale_cycles, "(self.event_queue + 2) * self.drain_turns + 1", "self.event_queue * self.tracker_banks",
        "hdl.test_slot_reuse:test_blocks_give_the_tracker_time_to_count_old_events", {"event_queue": 5, "banks": 2},
    ),
    # A line too many, and an epoch that comes again.
    "a tile that was finished stays open": Mistake(
        OpenTiles.elaborate, " - popcount(closes)", "",
        "contract.tracker.test_tracker_open_tiles:test_tiles_that_open_and_close_in_any_order_leave_none",
    ),
    "nobody looks for open tiles at a chunk's end": Mistake(
        OpenTiles.elaborate, "(self.done & left) | ", "",
        "contract.tracker.test_tracker_open_tiles:"
        "test_one_line_more_for_a_complete_tile_is_an_error_when_its_chunk_is_complete",
    ),
    "a tile may open in a complete chunk": Mistake(
        OpenTiles.elaborate, " | (self.complete & late)", "",
        "contract.tracker.test_tracker_open_tiles:"
        "test_a_line_that_comes_as_the_chunk_completes_is_an_error_in_any_cycle",
        {**_PLAIN, "after": 6},
    ),
    "the epoch of a job that a disarm dropped is free": Mistake(
        ControlRegisters._follow_epochs, " | (locks.disarm & locks.control.forced)", "",
        "contract.registers.test_registers_epochs:test_the_epoch_of_a_dropped_job_is_refused_in_every_range",
        {**_PLAIN, "how": "disarm", "epoch": 7}, proof=("registers.rules", *_EPOCHS),
    ),
    "only the epoch of the last dropped job is barred": Mistake(
        BarredEpochs.elaborate, "m.If(~epochs.valid)", "m.If(1)",
        "contract.registers.test_registers_epochs:"
        "test_the_epochs_of_dropped_jobs_and_those_between_them_are_refused",
        {**_PLAIN, "how": "abort", "dropped": (3, 4), "refused": (3,), "free": ()}, proof=("registers.rules", *_EPOCHS),
    ),
    "no epoch past 255 is barred": Mistake(
        BarredEpochs.elaborate, "(after <= epochs.more)", "(after <= epochs.more) & (new.epoch >= epochs.first)",
        "contract.registers.test_registers_epochs:"
        "test_the_epochs_of_dropped_jobs_and_those_between_them_are_refused",
        {**_PLAIN, "how": "disarm", "dropped": (254, 1), "refused": (0, 1), "free": ()},
    ),
    "the epochs barred grow upwards alone": Mistake(
        BarredEpochs.elaborate, " & (above <= below)", "",
        "contract.registers.test_registers_epochs:"
        "test_the_epochs_of_dropped_jobs_and_those_between_them_are_refused",
        {**_PLAIN, "how": "abort", "dropped": (7, 6), "refused": (7, 6), "free": (5, 8)},
        proof=("registers.rules", *_EPOCHS),
    ),
    "an epoch is barred for ever": Mistake(
        BarredEpochs.elaborate, "epochs.valid.eq(0)", "epochs.valid.eq(1)",
        "contract.registers.test_registers_epochs:test_the_next_job_that_is_complete_frees_the_epoch",
        proof=("registers.rules", *_EPOCHS, "nothing else is an error"),
    ),
}  # fmt: skip
_PROVEN = [name for name, mistake in MISTAKES.items() if mistake.proof]


@pytest.fixture(autouse=True)
def fresh_simulators() -> Iterator[None]:
    """Simulators are kept from test to test; none may have the mistake, or miss it."""
    backends._simulated.cache_clear()
    yield
    backends._simulated.cache_clear()


_OF_THE_UNIT = [name for name, mistake in MISTAKES.items() if "contract.core" in mistake.check]
"""Simulating it takes ten seconds and more."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in _OF_THE_UNIT else []) for name in MISTAKES]
)
def test_a_mistake_is_found_by_its_quick_check(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mistake = MISTAKES[name]
    mistake.run()
    backends._simulated.cache_clear()
    seed(monkeypatch, mistake.function, mistake.old, mistake.new)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        mistake.run()


@pytest.mark.long
@pytest.mark.parametrize("name", _PROVEN)
def test_and_by_a_proof(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mistake = MISTAKES[name]
    seed(monkeypatch, mistake.function, mistake.old, mistake.new)
    proof, *claims = mistake.proof
    expect_failure(proof, None, *claims)
