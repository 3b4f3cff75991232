"""What all runs together have covered: tables for people, a JSON file for programs."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from t3hdl.export.identity import hardware_identity
from t3sim.common.output import write_atomically

from tb.bench_run import BenchRun


class Report:
    """Sums the coverage of runs by part; lists failures.

    ``path``: of the JSON file; ``preset``: what was built; ``seeds``: how many, from 1 on; ``cycles``: of each run.
    """

    def __init__(self, path: Path, preset: str, seeds: int, cycles: int) -> None:
        self._path = path
        self._runs = {"preset": preset, "seeds": seeds, "cycles": cycles}
        self._bins: dict[str, Counter[str]] = {}
        self._moved: dict[str, Counter[str]] = {}
        self._cycles: dict[str, Counter[str]] = {}
        self._expected: dict[str, dict[str, int]] = {}
        self._failures: list[str] = []

    def add(self, job: BenchRun) -> None:
        """Take in what a successful run wrote."""
        found = json.loads(job.report_path().read_text())
        bins = self._bins.setdefault(job.part, Counter())
        for name, hits in found["bins"].items():
            bins[name] += hits
        moved = self._moved.setdefault(job.part, Counter())
        moved[job.simulator] += found["transactions"]
        self._cycles.setdefault(job.part, Counter())[job.simulator] += job.cycles
        self._expected[job.part] = found["expected_from"]

    def fail(self, reason: str) -> None:
        """Note a failure."""
        self._failures.append(reason)

    def length(self, part: str) -> int:
        """Cycles of all seeds together; another simulator plays the same ones."""
        return max(self._cycles[part].values())

    def empty(self) -> list[str]:
        """The bins that no run has hit, although the runs are long enough."""
        return [f"{part}: {name}" for part, name, expected in self._not_hit() if expected <= self.length(part)]

    def awaited(self) -> list[str]:
        """The bins that no run has hit, and that are expected in longer runs only."""
        return [
            f"{part}: {name}: expected from {expected:,} cycles"
            for part, name, expected in self._not_hit()
            if expected > self.length(part)
        ]

    def _not_hit(self) -> Iterator[tuple[str, str, int]]:
        """Part, bin, and the cycles from which it is expected."""
        for part, bins in self._bins.items():
            yield from ((part, name, self._expected[part][name]) for name, hits in bins.items() if not hits)

    def failed(self, bins: bool) -> int:
        """Exit status: 1 if a run failed or, with ``bins``, if a bin is empty that should not be."""
        return int(bool(self._failures or (bins and self.empty())))

    def print(self) -> None:
        """The table, bins that are not hit, and failures, on the terminal."""
        console = Console(soft_wrap=True)
        columns = ("part", "cycles", "transactions", "by simulator", "bins hit")
        table = Table(*columns, title="Testbenches of the generated Verilog")
        for part, moved in self._moved.items():
            bins = self._bins[part]
            table.add_row(
                part,
                f"{self.length(part):,}",
                f"{sum(moved.values()):,}",
                ", ".join(f"{name} {count:,}" for name, count in moved.items()),
                f"{sum(hits > 0 for hits in bins.values())} of {len(bins)}",
            )
        console.print(table)
        for name in self.awaited():
            console.print(f"not yet hit: {name}", markup=False)
        for name in self.empty():
            console.print(f"empty bin: {name}", markup=False)
        for reason in self._failures:
            console.print(f"FAILED {reason}", markup=False)

    def write(self) -> None:
        """Everything, as JSON, and the bins as a Markdown table beside it."""
        parts = {
            part: {
                "cycles": self.length(part),
                "transactions": dict(moved),
                "bins": dict(self._bins[part]),
                "expected_from": self._expected[part],
            }
            for part, moved in self._moved.items()
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "schema": 1,
            "hardware": hardware_identity(),
            **self._runs,
            "parts": parts,
            "failures": self._failures,
        }
        write_atomically(self._path, json.dumps(record, indent=1) + "\n")
        rows = [
            f"| {part} | {name} | {hits:,} | {self._expected[part][name]:,} |"
            for part, bins in self._bins.items()
            for name, hits in bins.items()
        ]
        text = "\n".join(["| part | bin | hits | expected from cycle |", "|---|---|---:|---:|", *rows])
        write_atomically(self._path.with_suffix(".md"), text + "\n")
