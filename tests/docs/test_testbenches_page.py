"""The page of testbench results says what its records hold, and they hold no failure."""

import json

from docs.pages import testbenches
from tb.bench import BENCHES

COVERAGE = {
    "hardware": {"version": "1.0.0", "netlist": "0123456789abcdef"},
    "preset": "small",
    "seeds": 2,
    "cycles": 10_000,
    "parts": {
        "slice": {
            "cycles": 20_000,
            "transactions": {"verilator": 5000, "icarus": 5001},
            "bins": {"full": 3, "both at once": 0},
        }
    },
    "failures": ["slice under icarus: seed 2"],
}
CHECK = {"dtype": "fp16", "op": "add", "cases": 46_464, "alone": 46_464, "differences": 1}


def checked(made: str) -> dict[str, object]:
    return {"hardware": COVERAGE["hardware"], "made": made, "checks": [CHECK]}


def test_parts_failures_and_cases_are_shown():
    page = testbenches.text(COVERAGE, {"testfloat-f16_add-1": checked("text"), "pairs": checked("every pair")})
    assert "| slice | 20,000 | 5,001 | 5,000 | 1 of 2 | both at once |" in page
    assert "`python -m tb.bench --preset small --seeds 2 --cycles 10000`" in page
    assert "\n- slice under icarus: seed 2\n" in page and "No run failed" not in page
    assert "| TestFloat, `f16_add`, level 1 | fp16 | add | 46,464 | 46,464 | 1 |" in page
    assert "| every pair | fp16 | add |" in page and "**Of another hardware than this tree's**" in page


def test_what_is_kept_is_of_all_parts_without_a_failure_and_with_all_bins():
    coverage = json.loads((testbenches.KEPT / "coverage.json").read_text(encoding="utf-8"))
    assert set(coverage["parts"]) == set(BENCHES) and coverage["failures"] == []
    assert not [name for part in coverage["parts"].values() for name, hits in part["bins"].items() if not hits]


def test_what_is_kept_of_the_alu_has_testfloat_and_no_difference():
    records = {path.parent.name: json.loads(path.read_text()) for path in testbenches.KEPT.glob("*/validate.json")}
    assert {name for name in records if name.startswith("testfloat-")} >= {"testfloat-f16_add-2", "testfloat-f32_add-1"}
    checks = [check for record in records.values() for check in record["checks"]]
    assert not [check for check in checks if check["differences"]]
    assert {(check["dtype"], check["op"]) for check in checks} >= {
        (dtype, op) for dtype in ("fp16", "bf16", "fp32", "int32") for op in ("add", "min", "max")
    }
