"""The program's tables: complete at any width, in units that fit their values."""

import io
import re
from pathlib import Path

import pytest
from opent3.tables import alu_table, bench_tables, result_table, tiling_text, validation_table
from rich.console import Console, RenderableType
from t3sim.cli import console
from t3sim.cli.doctor import Check, doctor_table
from t3sim.common.fitted_table import FittedTable
from t3sim.run.request import POLICIES
from t3sim.run.result import Result
from t3sim.validation.alu import Row as AluRow
from t3sim.validation.bench import Bench, Cost, PartBench, Target
from t3sim.validation.hbm import Row
from t3sim.validation.speed import PartSpeed

from tests.support.sample_result import PROVENANCE, sample_result

SOURCES = Path(console.__file__).parent


def text_of(table: RenderableType, width: int = 200) -> str:
    output = io.StringIO()
    Console(file=output, width=width, force_terminal=True, color_system=None).print(table)
    return output.getvalue()


def bench() -> Bench:
    parts = [PartBench(name="tracker", evaluations=2_500_000, speed=PartSpeed(in_numba=2.5e6, in_c=5e6))]
    return Bench(
        targets=[Target(name="HBM model, requests/s on stream_read", measured=2e6, limit=3e6, ceiling=False)],
        costs=[Cost(event="update", count=2_000_000, per_event=9.75)],
        parts=parts,
        evaluations=30_000_000,
        evaluated_share=0.15,
        lines=4_000_000,
        simulate_seconds=40.0,
        golden_seconds=38.0,
        provenance=PROVENANCE,
    )


TABLES: dict[str, FittedTable] = {
    "results": result_table([sample_result(policy) for policy in POLICIES], [1.0, None, *[1.25] * 5]),
    **dict(zip(("targets", "events", "parts"), bench_tables(bench()), strict=True)),
    "hbm": validation_table([Row(name="rw_random_75", requests=20000, cycles=123456, reference_cycles=123400,
                                 row_hits=1, reference_row_hits=None, error=4.5e-4, within=False)]),
    "alu": alu_table([AluRow(dtype="fp16", op="add", cases=1 << 32, alone=1 << 28, differences=0, seconds=480.0,
                             first=())]),
    "doctor": doctor_table([
        Check(name="rtl backend's tools", ok=False, found="incomplete", remedy="apt install g++ (or set CXX)"),
        Check(name="cache folder", ok=True, found="/var/cache/opent3"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("width", [*range(40, 81), 100, 132, 200])
@pytest.mark.parametrize("name", TABLES)
def test_every_word_of_every_table_is_whole_at_any_width(name, width):
    printed = text_of(TABLES[name], width)
    assert max(map(len, printed.splitlines())) <= width
    assert set(text_of(TABLES[name], 10_000).split()) == set(printed.split())


def test_there_is_no_other_kind_of_table():
    for path in SOURCES.rglob("*.py"):
        found = re.search(r"rich\.table import .*\bTable\b|[^a-z]Console\(\)", path.read_text(encoding="utf-8"))
        assert found is None or path.name == "fitted_table.py", path


def scaled(record: Result, factor: float) -> Result:
    """The result of a run that is ``factor`` times as large."""
    assert record.rtl is not None
    time, traffic = record.time_ns.model_dump(exclude_none=True), record.traffic_bytes_per_gpu.model_dump()
    cycles = {name: round(getattr(record.rtl, name) * factor) for name in ("cycles", "cycles_evaluated")}
    return record.model_copy(
        update={
            "time_ns": record.time_ns.model_copy(update={name: ns * factor for name, ns in time.items()}),
            "traffic_bytes_per_gpu": record.traffic_bytes_per_gpu.model_copy(
                update={name: size * factor for name, size in traffic.items()}
            ),
            "rtl": record.rtl.model_copy(update=cycles),
        }
    )


@pytest.mark.parametrize(
    ("factor", "time", "traffic", "cycles"),
    [
        (1, "time (us) 1800", "DRAM traffic per GPU (MB) 596.0", "RTL cycles (millions) 200.0"),
        (1e-3, "time (ns) 1800", "DRAM traffic per GPU (kB) 596.0", "RTL cycles (thousands) 200.0"),
        (30, "time (ms) 54.00", "DRAM traffic per GPU (GB) 17.88", "RTL cycles (millions) 6000"),
    ],
)
def test_units_follow_the_values(factor, time, traffic, cycles):
    lines = [
        " ".join(line.split())
        for line in text_of(result_table([scaled(sample_result("t3"), factor)], [None])).splitlines()
    ]
    for line in (time, traffic, cycles):
        assert line in lines
    assert not any(line.endswith(" 0.0") for line in lines)


def test_rows_of_one_group_have_one_unit():
    printed = text_of(result_table([sample_result("sequential"), sample_result("t3-mca")], [1.0, 1.3]))
    assert set(re.findall(r"(?:time|GEMM|scatter|gather|exposed) \((\w+)\)", printed)) == {"us"}
    assert set(re.findall(r"(?:GPU|reads|writes) \((\w+)\)", printed)) == {"MB"}


def test_rows_that_no_run_has_are_left_out_but_for_the_data_check():
    ideal, tracked = (
        text_of(result_table([sample_result(policy) for policy in policies], [None] * len(policies)))
        for policies in (("ideal-overlap",), ("ideal-overlap", "t3"))
    )
    for title in ("RTL cycles", "evaluated", "blocks by tile"):
        assert title not in ideal and title in tracked
    assert re.search(r"data check: elements +-", ideal), "that nothing was checked is said"


def test_the_tiling_has_a_unit():
    assert tiling_text(sample_result("t3").gemm).endswith(
        "2176 workgroups of 128 x 128 in 28 stages, predicted 1390 us"
    )


def test_doctor_has_remedies_only_if_something_is_wrong():
    assert "remedy" in text_of(TABLES["doctor"])
    assert "remedy" not in text_of(doctor_table([Check(name="numba", ok=True, found="0.60")]))
