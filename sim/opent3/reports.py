"""Finished results for people: what limited a run, in sentences, and all of it as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t3sim.inputs import arguments

from .runs import Comparison, Run

if TYPE_CHECKING:
    from t3sim.explain.case import Finding


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What limited each run: ``findings`` by policy. As text, sentences; each :class:`Finding` also has its figures."""

    findings: Mapping[str, list[Finding]]

    def __str__(self) -> str:
        sections = (
            "\n".join((f"{policy}:", *(f"- {finding.text}" for finding in found)))
            for policy, found in self.findings.items()
        )
        return "\n\n".join(sections)

    def to_json(self) -> dict[str, Any]:
        """The findings for programs, as ``t3 explain --json`` prints them."""
        from t3sim.explain.folder import to_json

        return to_json(dict(self.findings))


def explain(results: str | Path | Run | Comparison) -> Explanation:
    """What limited a run, or every policy of a comparison; nothing is simulated.

    ``results``: as :func:`run` or :func:`compare` returned them, or the folder that they were saved to. Raises
    ValueError for another folder.
    """
    from t3sim.explain.folder import explain as explain_records  # here, because rules take a while to load
    from t3sim.explain.folder import read_records

    if isinstance(results, Run):
        records = [results.record]
    elif isinstance(results, Comparison):
        records = [run.record for run in results.runs.values()]
    else:
        arguments.instance("results", results, (str, os.PathLike), "a Run, a Comparison, or a folder of either")
        records = read_records(Path(results))
    return Explanation(findings=explain_records(records))


def report(
    folders: str | Path | Iterable[str | Path],
    out: str | Path | None = None,
    *,
    on_section: Callable[[str], None] | None = None,
) -> Path:
    """Writes the results in ``folders`` as one HTML page that needs no network; returns the file.

    ``folders``: output folders of run, compare, model, sweep, map or reproduce, one or several. ``out``: the file, by
    default ``report.html`` in the first folder. ``on_section``: called with the name of each folder when its section
    begins. A file that is there is replaced only if it is a report as it was written. Raises ValueError for a folder of
    another kind, and for a file that may not or cannot be written.
    """
    from t3sim.report.folders import read_folder  # here, because charts take a second to import
    from t3sim.report.output import NAME, target_of, write_report
    from t3sim.report.page import report_html

    several = (folders,) if isinstance(folders, str | os.PathLike) else folders
    paths = [Path(folder) for folder in arguments.items("folders", several, (str, os.PathLike), "folders")]
    if not paths:
        raise ValueError("folders must be at least one output folder")
    file = arguments.path_of("out", out) or paths[0] / NAME
    read = [read_folder(path) for path in paths]
    target_of(file)  # before the work
    write_report(report_html(read, on_section), file)
    return file
