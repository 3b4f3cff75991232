"""What all runs together have covered: tables for people, a JSON file for programs."""

import json
from collections import Counter
from pathlib import Path

from job import Job
from rich.console import Console
from rich.table import Table


class Report:
    """Sums the coverage of runs by part; lists failures."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bins: dict[str, Counter[str]] = {}
        self._moved: dict[str, Counter[str]] = {}
        self._failures: list[str] = []

    def add(self, job: Job) -> None:
        """Take in what a successful run wrote."""
        found = json.loads(job.report_path().read_text())
        bins = self._bins.setdefault(job.part, Counter())
        for name, hits in found["bins"].items():
            bins[name] += hits
        moved = self._moved.setdefault(job.part, Counter())
        moved[job.simulator] += found["transactions"]
        moved["cycles"] += found["cycles"]

    def fail(self, reason: str) -> None:
        """Note a failure."""
        self._failures.append(reason)

    def empty(self) -> list[str]:
        """The bins that no run has hit."""
        return [f"{part}: {name}" for part, bins in self._bins.items() for name, hits in bins.items() if not hits]

    def failed(self, bins: bool) -> int:
        """Exit status: 1 if a run failed or, with ``bins``, if a bin is empty."""
        return int(bool(self._failures or (bins and self.empty())))

    def print(self) -> None:
        """The table, empty bins and failures, on the terminal."""
        console = Console(soft_wrap=True)
        table = Table("part", "transactions", "by simulator", "bins hit", title="Testbenches of the generated Verilog")
        for part, moved in self._moved.items():
            by_simulator = {name: count for name, count in moved.items() if name != "cycles"}
            bins = self._bins[part]
            table.add_row(
                part,
                f"{sum(by_simulator.values()):,}",
                ", ".join(f"{name} {count:,}" for name, count in by_simulator.items()),
                f"{sum(hits > 0 for hits in bins.values())} of {len(bins)}",
            )
        console.print(table)
        for name in self.empty():
            console.print(f"empty bin: {name}", markup=False)
        for reason in self._failures:
            console.print(f"FAILED {reason}", markup=False)

    def write(self) -> None:
        """Everything, as JSON, and the bins as a Markdown table beside it."""
        parts = {
            part: {"transactions": dict(moved), "bins": dict(self._bins[part])} for part, moved in self._moved.items()
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({"parts": parts, "failures": self._failures}, indent=1) + "\n")
        rows = [f"| {part} | {name} | {hits:,} |" for part, bins in self._bins.items() for name, hits in bins.items()]
        text = "\n".join(["| part | bin | hits |", "|---|---|---:|", *rows])
        self._path.with_suffix(".md").write_text(text + "\n")
