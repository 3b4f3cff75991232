"""Mutation of the hardware: ``python -m tb.mutation.campaign --help``, or ``make mutants``.

For each part: mutants of its netlist, the part's unit bench on each of them, a search for a proof that those that the
bench does not notice are no mistakes at all, and the proofs on the rest. Prints a table, writes everything as JSON.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from opent3.options import usable_cores
from rich.console import Console
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.equivalence import Comparison
from t3formal.prover.mutant_proofs import noticed
from t3formal.prover.mutation import Netlist
from t3formal.prover.netlist import ToolError
from t3hdl.config import preset
from t3hdl.export.identity import hardware_identity
from t3hdl.export.verilog import PARTS
from t3sim.common.json_text import json_text
from t3sim.common.output import write_atomically

from tb.mutation.outcomes import MutantOutcome, explain, known, record, table

SHARES = {
    "trigger": 15, "tracker": 13, "slice": 11, "registers": 11, "matcher": 9, "nmc": 8, "alu": 8, "axi": 7, "leaf": 6,
    "root": 6, "monitor": 6,
}  # fmt: skip
"""Parts, and how many mutants of a hundred each gets: more where there is more control logic. The clock crossing has
two clocks, which neither benches nor proofs of mutants know; ``core`` and ``unit`` are made of the parts."""
CHANGES: dict[str, Any] = {
    "descriptors": 4,
    "chunk_window": 2,
    "event_queue": 3,
    "token_queue": 3,
    "tile_count_bits": 4,
    "chunk_count_bits": 8,
}
SIZE = preset("small", **CHANGES)
"""As small as `small` can be made without losing logic: proofs look at each mutant again."""


@dataclass(frozen=True, kw_only=True)
class CampaignSettings:
    """What is done with each part; ``limit_s`` : seconds for each question to ABC, ``proofs`` : an option."""

    seed: int
    limit_s: int
    proofs: str


class Trial:
    """The mutants of one part, and their ``outcomes`` by number."""

    def __init__(self, component: str, count: int, plan: CampaignSettings) -> None:
        self._plan, self._config = plan, SIZE
        self._netlist = Netlist(component, self._config)
        self._mutants = self._netlist.choose(count, plan.seed)
        self.outcomes = {
            m.number: MutantOutcome(component=component, number=m.number, command=str(m), wire=m.wire)
            for m in self._mutants
        }

    def bench(self) -> None:
        """The unit bench on each mutant. Raises RuntimeError if it finds a mistake where there is none."""
        from tb.mutation.benches import MutatedPart, bench_of, found_by_bench  # it takes seconds to import

        component, seed = self._netlist.component, self._plan.seed
        part = MutatedPart(self._netlist, self._mutants, self._config)
        with bench_of(component, self._config) as bench:
            if healthy := found_by_bench(bench, part, 0, seed):
                raise RuntimeError(f"the bench of {component} finds a mistake where there is none: {healthy}")
            for number, outcome in self.outcomes.items():
                outcome.bench = found_by_bench(bench, part, number, seed)

    def compare(self) -> None:
        """Looks for a proof that what the bench does not notice cannot be noticed."""
        left = [
            outcome
            for outcome in self.outcomes.values()
            if not outcome.bench and outcome.equivalence in ("", "unknown")
        ]
        if not left:
            return
        with TemporaryDirectory(prefix="t3-mutants-") as folder:
            miter = Comparison(self._netlist, self._mutants, Path(folder))
            for outcome in left:
                outcome.equivalence = miter.compare(outcome.number, limit_s=self._plan.limit_s)

    def _is_open(self, outcome: MutantOutcome) -> bool:
        """Whether the next proof looks at a mutant."""
        seen = bool(outcome.proofs) if self._plan.proofs == "all" else bool(outcome.bench or outcome.proofs)
        return not seen and not outcome.equivalent

    def prove(self) -> None:
        """Each proof of the part, or of a block, on the mutants that no proof before it has noticed, and no bench."""
        outcomes, component = self.outcomes, self._netlist.component
        for outcome in outcomes.values():
            outcome.proofs, outcome.unproven = [], []
        for proof in all_proofs():
            if proof.component in PARTS and (self._plan.proofs == "blocks" or proof.component != component):
                continue
            left = tuple(mutant for mutant in self._mutants if self._is_open(outcomes[mutant.number]))
            if not left:
                return
            for number, how in noticed(proof, self._config, self._netlist, left, limit_s=self._plan.limit_s):
                if how is not None:
                    (outcomes[number].proofs if how == "violated" else outcomes[number].unproven).append(proof.name)


def examine(component: str, count: int, plan: CampaignSettings, before: list[MutantOutcome]) -> list[MutantOutcome]:
    """The outcomes of ``count`` mutants of a part; if ``before`` has the same ones, the bench is not asked again."""
    trial = Trial(component, count, plan)
    if [outcome.command for outcome in before] == [outcome.command for outcome in trial.outcomes.values()]:
        trial.outcomes = {outcome.number: outcome for outcome in before}
    else:
        trial.bench()
    trial.compare()
    explain(trial.outcomes.values())
    if plan.proofs != "none":
        trial.prove()
    return list(trial.outcomes.values())


def examine_all(
    counts: Mapping[str, int], plan: CampaignSettings, before: Mapping[str, list[MutantOutcome]], workers: int
) -> Iterator[tuple[str, list[MutantOutcome]]]:
    """Parts with the outcomes of so many mutants, each as soon as it is examined; ``workers`` parts at a time."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(examine, name, count, plan, before.get(name, [])): name for name, count in counts.items()
        }
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # nobody would take what they find
            raise


@click.command(help="Mutants of the parts' netlists against unit benches and proofs.")
@click.argument("components", nargs=-1, type=click.Choice(list(SHARES)))
@click.option("--mutants", default=340, show_default=True, type=click.IntRange(20), help="In all parts together.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(1))
@click.option("--limit", "limit_s", default=12, show_default=True, type=click.IntRange(1), help="Seconds per question.")
@click.option(
    "--proofs",
    default="rest",
    show_default=True,
    type=click.Choice(("none", "blocks", "rest", "all")),
    help="Those of blocks, or of parts too, look at what benches do not notice; all: at every mutant, for hours.",
)
@click.option("--jobs", default=usable_cores, show_default="usable cores", type=click.IntRange(1))
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the result, as JSON. Of mutants that it has already, only what is open is asked again.",
)
def main(
    components: tuple[str, ...], mutants: int, seed: int, limit_s: int, proofs: str, jobs: int, out: Path | None
) -> None:
    """Examine, report."""
    plan = CampaignSettings(seed=seed, limit_s=limit_s, proofs=proofs)
    console, started = Console(stderr=True), time.monotonic()
    try:
        netlists = {"hardware": hardware_identity(), "changes": CHANGES}
        found = known(out, netlists, asdict(plan))
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    counts = {name: mutants * share // 100 for name, share in SHARES.items() if name in components or not components}
    if len(counts) < len(SHARES) and out is not None and out.exists() and not found:
        raise click.ClickException(
            f"{out} is of another hardware or size, and would lose its other parts: run all, or choose another --out"
        )
    explain(outcome for part in found.values() for outcome in part)
    try:
        for done, (name, outcomes) in enumerate(examine_all(counts, plan, dict(found), jobs), 1):
            found[name] = outcomes  # what is not examined again yet stays: the run may end before it is
            console.print(f"{done} of {len(counts)} parts after {time.monotonic() - started:.0f} s: {name}")
            if out is not None:
                write_atomically(out, json_text(_record(found, netlists, plan)))
    except BrokenProcessPool as error:
        raise click.ClickException(
            "a part's process was killed, as happens when memory runs out: use fewer --jobs"
        ) from error
    except (ToolError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    _show(found, netlists, plan)


def _record(
    found: Mapping[str, list[MutantOutcome]], netlists: Mapping[str, Any], plan: CampaignSettings
) -> dict[str, Any]:
    return record((outcome for part in found.values() for outcome in part), **netlists, **asdict(plan))


def _show(found: Mapping[str, list[MutantOutcome]], netlists: Mapping[str, Any], plan: CampaignSettings) -> None:
    """Prints the table, and a line for each mutant that survives."""
    Console().print(table(_record(found, netlists, plan)["components"]))
    for part in found.values():
        for outcome in part:
            if not outcome.killed and not outcome.equivalent:
                Console().print(
                    f"survives: {outcome.component}: {outcome.command} ({outcome.equivalence})", soft_wrap=True
                )


if __name__ == "__main__":
    main()
