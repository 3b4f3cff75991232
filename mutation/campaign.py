"""Mutation of the hardware: ``python mutation/campaign.py --help``, or ``make mutants``.

For each part: mutants of its netlist, the part's unit bench on each of them, a search for a proof that those which the
bench does not notice are no mistakes at all, and the proofs on the rest. Prints a table, writes everything as JSON.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "tests")]  # the stimulus that the tests share

from fates import Fate, explain, known, record, table
from rich.console import Console
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.equivalence import Comparison
from t3formal.prover.mutant_proofs import noticed
from t3formal.prover.mutation import Netlist
from t3hdl.config import preset
from t3hdl.export.verilog import PARTS
from t3sim.common.output import write_atomically
from t3sim.run.result import json_text

SHARES = {
    "trigger": 15, "tracker": 13, "slice": 11, "registers": 11, "matcher": 9, "nmc": 8, "alu": 8, "axi": 7, "leaf": 6,
    "root": 6, "monitor": 6,
}  # fmt: skip
"""Parts, and how many mutants of a hundred each gets: more where there is more control logic. The clock crossing has
two clocks, which neither benches nor proofs of mutants know; ``core`` and ``unit`` are made of the parts."""
CHANGES: dict[str, Any] = {
    "descriptors": 4, "chunk_window": 2, "event_queue": 3, "token_queue": 3, "tile_count_bits": 4,
    "chunk_count_bits": 8,
}  # fmt: skip
SIZE = preset("small", **CHANGES)
"""As small as `small` can be made without losing logic: proofs look at each mutant again."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done with each part; ``limit_s`` : seconds for each question to ABC, ``proofs`` : an option."""

    seed: int
    limit_s: int
    proofs: str


class Trial:
    """The mutants of one part, and their ``fates`` by number."""

    def __init__(self, component: str, count: int, plan: Plan) -> None:
        self._plan, self._config = plan, SIZE
        self._netlist = Netlist(component, self._config)
        self._mutants = self._netlist.choose(count, plan.seed)
        self.fates = {
            m.number: Fate(component=component, number=m.number, command=str(m), wire=m.wire) for m in self._mutants
        }

    def bench(self) -> None:
        """The unit bench on each mutant. Raises RuntimeError if it finds a mistake where there is none."""
        from benches import MutatedPart, bench_of, found_by_bench  # it takes seconds to import

        component, seed = self._netlist.component, self._plan.seed
        part = MutatedPart(self._netlist, self._mutants, self._config)
        with bench_of(component, self._config) as bench:
            if healthy := found_by_bench(bench, part, 0, seed):
                raise RuntimeError(f"the bench of {component} finds a mistake where there is none: {healthy}")
            for number, fate in self.fates.items():
                fate.bench = found_by_bench(bench, part, number, seed)

    def compare(self) -> None:
        """Looks for a proof that what the bench does not notice cannot be noticed."""
        left = [fate for fate in self.fates.values() if not fate.bench and fate.equivalence in ("", "unknown")]
        if not left:
            return
        with TemporaryDirectory(prefix="t3-mutants-") as folder:
            miter = Comparison(self._netlist, self._mutants, Path(folder))
            for fate in left:
                fate.equivalence = miter.compare(fate.number, limit_s=self._plan.limit_s)

    def _is_open(self, fate: Fate) -> bool:
        """Whether the next proof looks at a mutant."""
        seen = bool(fate.proofs) if self._plan.proofs == "all" else bool(fate.bench or fate.proofs)
        return not seen and not fate.equivalent

    def prove(self) -> None:
        """Each proof of the part, or of a block, on the mutants that no proof before it has noticed, and no bench."""
        fates, component = self.fates, self._netlist.component
        for fate in fates.values():
            fate.proofs, fate.unproven = [], []
        for proof in all_proofs():
            if proof.component in PARTS and (self._plan.proofs == "blocks" or proof.component != component):
                continue
            left = tuple(mutant for mutant in self._mutants if self._is_open(fates[mutant.number]))
            if not left:
                return
            for number, outcome in noticed(proof, self._config, self._netlist, left, limit_s=self._plan.limit_s):
                if outcome is not None:
                    (fates[number].proofs if outcome == "violated" else fates[number].unproven).append(proof.name)


def examine(component: str, count: int, plan: Plan, before: list[Fate]) -> list[Fate]:
    """The fates of ``count`` mutants of a part; if ``before`` has the same ones, the bench is not asked again."""
    trial = Trial(component, count, plan)
    if [fate.command for fate in before] == [fate.command for fate in trial.fates.values()]:
        trial.fates = {fate.number: fate for fate in before}
    else:
        trial.bench()
    trial.compare()
    explain(trial.fates.values())
    if plan.proofs != "none":
        trial.prove()
    return list(trial.fates.values())


@click.command(help="Mutants of the parts' netlists against unit benches and proofs.")
@click.argument("components", nargs=-1, type=click.Choice(list(SHARES)))
@click.option("--mutants", default=340, show_default=True, type=click.IntRange(20), help="In all parts together.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(1))
@click.option("--limit", "limit_s", default=5, show_default=True, type=click.IntRange(1), help="Seconds per question.")
@click.option(
    "--proofs", default="rest", show_default=True, type=click.Choice(("none", "blocks", "rest", "all")),
    help="Those of blocks, or of parts too, look at what benches do not notice; all: at every mutant, for hours.",
)  # fmt: skip
@click.option(
    "--workers", default=lambda: len(os.sched_getaffinity(0)), show_default="usable cores", type=click.IntRange(1)
)
@click.option(
    "--out", "-o", type=click.Path(path_type=Path, dir_okay=False),
    help="File for the result, as JSON. Of mutants that it has already, only what is open is asked again.",
)  # fmt: skip
def main(
    components: tuple[str, ...], mutants: int, seed: int, limit_s: int, proofs: str, workers: int, out: Path | None
) -> None:
    """Examine, report."""
    plan, started, console = Plan(seed=seed, limit_s=limit_s, proofs=proofs), time.monotonic(), Console(stderr=True)
    try:
        before = known(out)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    todo = [name for name in SHARES if name in components or not components]
    fates = [fate for name, part in before.items() if name not in todo for fate in part]
    explain(fates)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(examine, name, mutants * SHARES[name] // 100, plan, before.get(name, [])): name for name in todo
        }
        for done, future in enumerate(as_completed(running), 1):
            fates += future.result()
            found = record(fates, changes=CHANGES, seed=seed, limit_s=limit_s, proofs=proofs)
            console.print(f"{done} of {len(todo)} parts after {time.monotonic() - started:.0f} s: {running[future]}")
            if out is not None:
                write_atomically(out, json_text(found))
    Console().print(table(found["components"]))
    for fate in fates:
        if not fate.killed and not fate.equivalent:
            Console().print(f"survives: {fate.component}: {fate.command} ({fate.equivalence})", soft_wrap=True)


if __name__ == "__main__":
    main()
