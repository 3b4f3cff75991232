"""The page of testbench results: ``python -m docs.pages testbenches`` writes it from the records beside it.

``docs/results/testbenches`` has ``coverage.json`` of ``make tb``, and a folder of ``t3 validate alu --out`` for each
set of cases; a text's folder has TestFloat's function and level in its name, as ``testfloat-f16_add-2``.
"""

import json
from collections.abc import Mapping
from typing import Any

from docs.pages import RESULTS
from docs.pages.shared.hardware import measured_on
from docs.pages.shared.markdown import table
from docs.pages.texts.testbenches import ARITHMETIC, HEAD, RUNS

PAGE = RESULTS / "testbenches.md"
KEPT = RESULTS / "testbenches"
_TESTFLOAT = "testfloat-"


def page() -> str:
    """The text of :data:`PAGE`, from what is kept."""
    files = {path.parent.name: path for path in sorted(KEPT.glob("*/validate.json"))}
    checks = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items()}
    return text(json.loads((KEPT / "coverage.json").read_text(encoding="utf-8")), checks)


def text(coverage: Mapping[str, Any], checks: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of the coverage of the testbenches, and of checks of the ALU by the name of their folder."""
    hardware = measured_on(*(record["hardware"] for record in (coverage, *checks.values())))
    return (
        f"{HEAD}\n{hardware}## The parts\n\n{RUNS.format(**coverage)}\n"
        f"{_parts(coverage)}\n## The ALU's arithmetic\n\n{ARITHMETIC}\n{_arithmetic(checks)}"
    )


def _parts(coverage: Mapping[str, Any]) -> str:
    """A row for each part: what moved under each simulator, how many bins were hit; then the failures."""
    simulators = sorted({name for part in coverage["parts"].values() for name in part["transactions"]})
    heads = ("part", "cycles:", *(f"transactions, {name}:" for name in simulators), "bins hit:", "bins never hit")
    rows = [
        (
            name,
            f"{part['cycles']:,}",
            *(f"{part['transactions'][simulator]:,}" for simulator in simulators),
            f"{sum(map(bool, part['bins'].values()))} of {len(part['bins'])}",
            ", ".join(bin for bin, hits in part["bins"].items() if not hits) or "none",
        )
        for name, part in coverage["parts"].items()
    ]
    failures = [f"- {failure}\n" for failure in coverage["failures"]] or ["No run failed.\n"]
    return table(heads, rows) + "\n" + "".join(failures)


def _arithmetic(checks: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each operation and dtype of each set of cases."""
    heads = ("cases from", "dtype", "operation", "cases:", "alone:", "differences:")
    rows = [
        (
            _cases(name, record["made"]),
            check["dtype"],
            check["op"],
            *(f"{check[count]:,}" for count in ("cases", "alone", "differences")),
        )
        for name, record in checks.items()
        for check in record["checks"]
    ]
    return table(heads, rows)


def _cases(name: str, made: str) -> str:
    """How the cases of a folder were made."""
    if not name.startswith(_TESTFLOAT):
        return made
    function, level = name.removeprefix(_TESTFLOAT).rsplit("-", 1)
    return f"TestFloat, `{function}`, level {level}"
