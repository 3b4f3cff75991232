"""`t3 validate alu`: cases, what counts as a difference, and the compiled ALU itself."""

import json
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner
from t3hdl.config import preset
from t3hdl.export.identity import hardware_identity
from t3hdl.interface.layouts import Dtype, Op
from t3sim.cli import main as cli
from t3sim.run.request import SimulationError
from t3sim.validation import alu as validate_alu
from t3sim.validation.alu import exhaustive_checks, random_checks, run, text_check
from t3sim.validation.alu_cases import every_pair, random_pairs, read_text, special_values

from tests.contract.nmc.golden_alu import FLAG, MASKED_FLAG, RESULT, SILENT, golden_alu

PAPER = preset("paper")
SUMS = ["3C00 3C00 4000 00", "7BFF 7BFF 7C00 05", "7C00 FC00 FE00 10", "3C00 0001 3C00 01", "bc00 3c00 0000 0"]


def ignore(cases: int, seconds: float) -> None:
    """Watches nothing."""


def row_of(part, checks, threads=1):
    """The only row."""
    (check,) = checks
    return run(part, check, threads=threads, watch=ignore)


def sums(lines=SUMS, **changes):
    return text_check(PAPER, "add", "fp16", lines, changes.get("every"))


def test_text_is_read_as_testfloat_writes_it():
    (block,) = list(read_text(["3C00 3c00 4000 00\n", "\n", " 7C00 FC00 FFFF 10 "], Dtype.FP16))
    cases = block()
    assert cases.a.tolist() == [0x3C00, 0x7C00] and cases.b.tolist() == [0x3C00, 0xFC00]
    assert cases.bits.tolist() == [0x4000, 0x7E00], "any NaN is the canonical one"
    assert cases.flags.tolist() == [0, 16]
    (block,) = list(read_text(["00000001 FFFFFFFF 7FFFFFFF 00"], Dtype.INT32))
    assert block().bits.tolist() == [0x7FFFFFFF], "integers have no NaN"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3C00 3C00 4000", "line 2: must have four fields, a b result flags, not '3C00 3C00 4000'"),
        ("3C00 3C00 4000 00 00", "line 2: must have four fields"),
        ("3C00 13C00 4000 00", "line 2: must be hexadecimal from 0 to FFFF, not '13C00'"),
        ("3C00 3C00 -400 00", "line 2: must be hexadecimal from 0 to FFFF, not '-400'"),
        ("3C00 3C00 4000 20", "line 2: must be hexadecimal from 0 to 1F, not '20'"),
        ("3C00 3C00 10000000000000000 00", "line 2: must be hexadecimal from 0 to FFFF, not '10000000000000000'"),
        ("3C00 one 4000 00", "line 2: must be hexadecimal from 0 to FFFF, not 'one'"),
    ],
)
def test_wrong_lines_are_refused(line, message):
    with pytest.raises(ValueError, match=message):
        row_of(golden_alu(), sums([SUMS[0], line]))


def test_no_cases_and_missing_or_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no cases on standard input"):
        row_of(golden_alu(), sums(["\n"]))
    with pytest.raises(ValueError, match="need --dtype and --op"):
        text_check(PAPER, "add", None, SUMS, None)
    with pytest.raises(ValueError, match="--op must be one of add, min, max, not 'mul'"):
        exhaustive_checks(PAPER, "mul", None, None)
    with pytest.raises(ValueError, match="--dtype must be one of fp16, bf16, fp32, int32, not 'fp64'"):
        random_checks(PAPER, None, "fp64", count=1, seed=0, every=None)
    with pytest.raises(ValueError, match="--exhaustive needs a dtype of 16 bits, fp16 or bf16, not fp32"):
        exhaustive_checks(PAPER, "add", "fp32", None)
    with pytest.raises(ValueError, match="--dtype must be one of fp16, not 'bf16'"):
        exhaustive_checks(preset("fpga"), "add", "bf16", None)
    with pytest.raises(ValueError, match=r"--random must be in 0 to 2\*\*32"):
        random_checks(PAPER, None, None, count=-1, seed=0, every=None)


def test_right_results_are_no_differences():
    row = row_of(golden_alu(), sums(SUMS * 7))
    assert (row.cases, row.alone, row.differences, row.first) == (35, 35, 0, ())


def test_wrong_results_and_flags_are_shown():
    lines = ["3C00 3C00 4001 00", SUMS[0], "7BFF 7BFF 7C00 01", "8001 3C00 3C00 01"]
    row = row_of(golden_alu(), sums(lines))
    assert row.cases == 4 and row.differences == 2
    assert row.texts() == [
        "fp16 add of 3C00 (1) and 3C00 (1): 4000 (2), flags 00 (none); expected 4001 (2.00195312), flags 00 (none)",
        (
            "fp16 add of 7BFF (65504) and 7BFF (65504): 7C00 (inf), flags 05 (overflow, inexact); "
            "expected 7C00 (inf), flags 01 (inexact)"
        ),
    ]
    row = row_of(golden_alu(), text_check(PAPER, "min", "int32", ["FFFFFFFF 1 1 0"], None))
    (text,) = row.texts()
    assert text == (
        "int32 min of FFFFFFFF (-1) and 00000001 (1): FFFFFFFF (-1), flags 00 (none); "
        "expected 00000001 (1), flags 00 (none)"
    )
    row = row_of(golden_alu(), text_check(PAPER, "max", "bf16", ["3F80 FFC0 7FFF 0"], None))
    assert "bf16 max of 3F80 (1) and FFC0 (nan): 3F80 (1)" in row.texts()[0]


@pytest.mark.parametrize("every", [1, 16])
@pytest.mark.parametrize("place", [0, 7, 15])
@pytest.mark.parametrize("fault", [RESULT, FLAG])
def test_a_fault_of_one_lane_is_found_in_a_full_line(fault, place, every):
    lines = [f"{0x3C00 + number:04X} 0000 {0x3C00 + number:04X} 00" for number in range(32)]
    row = row_of(golden_alu(fault, place, 0x3C00 + 16 + place), sums(lines, every=every))
    assert row.differences == 1
    (difference,) = row.first
    faulty = 0x3C00 + 16 + place
    if every == 1 or fault == RESULT:  # else only the line is known
        assert difference.a == faulty
    expected = (faulty ^ 1, 0) if fault == RESULT else (difference.expected_bits, 1)
    assert (difference.bits, difference.flags) == expected


def test_a_missing_flag_is_found_where_the_other_lanes_raise_it():
    lines = ["3C00 0001 3C00 01"] * 32
    assert row_of(golden_alu(FLAG, 3, 0x3C00), sums(lines)).differences == 2
    assert row_of(golden_alu(FLAG, 3, 0x3C00), sums(lines, every=16)).differences == 0, "line 3 would have told"
    assert row_of(golden_alu(FLAG, 3, 0x3C00), sums(lines * 2, every=16)).differences == 1


def test_masked_lanes_must_not_raise_flags():
    assert row_of(golden_alu(MASKED_FLAG), sums()).differences == len(SUMS) - 1  # one of them is invalid anyway


def test_missing_results_end_the_check():
    with pytest.raises(SimulationError, match="the ALU gave 0 results for 1 lines"):
        row_of(golden_alu(SILENT), sums())


def test_only_the_first_differences_are_kept_in_order():
    lines = [f"{number:04X} 0000 FFFF 00" for number in range(200)]
    row = row_of(golden_alu(), sums(lines), threads=2)
    assert row.differences == 200 and [difference.a for difference in row.first] == list(range(10))


def test_special_values_have_both_zeros_limits_infinities_and_nans():
    assert {0, 0x8000, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0x7FFF, 0xFFFF, 0x3C00} <= set(
        special_values(Dtype.FP16).tolist()
    )
    assert {0, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x80, 0x7F} <= set(special_values(Dtype.BF16).tolist())
    assert {0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0, 1} <= set(special_values(Dtype.INT32).tolist())
    assert len(special_values(Dtype.FP32)) > 150


@pytest.mark.parametrize("dtype", Dtype)
def test_random_pairs_depend_on_the_seed_alone(dtype):
    def pairs(seed):
        blocks = [block() for block in random_pairs(Op.ADD, dtype, 1000, seed)]
        assert [len(block) for block in blocks] == [len(special_values(dtype)) ** 2, 1000]
        return np.concatenate([blocks[1].a, blocks[1].b]).tolist()

    assert pairs(1) == pairs(1) != pairs(2)


def test_every_pair_is_every_pair():
    blocks = list(every_pair(Op.MAX, Dtype.BF16))
    assert len(blocks) << 20 == 1 << 32
    for number in (0, len(blocks) - 1):
        cases = blocks[number]()
        pairs = cases.a.astype(np.int64) << 16 | cases.b
        assert np.array_equal(pairs, np.arange(number << 20, number + 1 << 20))


def test_threads_share_the_work_and_give_the_same_row():
    rows = [
        run(golden_alu(RESULT, 2, 5), check, threads=threads, watch=ignore)
        for threads in (1, 3)
        for check in random_checks(PAPER, "add", "fp16", count=3 << 20, seed=5, every=None)
    ]
    assert rows[0].differences == rows[1].differences > 0 and rows[0].first == rows[1].first
    assert rows[0].cases == rows[1].cases == (3 << 20) + len(special_values(Dtype.FP16)) ** 2


def test_an_interrupt_ends_the_threads():
    def interrupt(cases: int, seconds: float) -> None:
        raise KeyboardInterrupt

    (check,) = exhaustive_checks(PAPER, "add", None, None)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run(golden_alu(), check, threads=2, watch=interrupt)
    assert threading.active_count() == before


def started(monkeypatch, refusal: BaseException | None = None, after: int = 0) -> list[threading.Thread]:
    """The threads of pools that start from now on; ``after`` so many comes the ``refusal``."""
    found: list[threading.Thread] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        if "ThreadPoolExecutor" in thread.name:
            if refusal is not None and len(found) == after:
                raise refusal
            found.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    return found


def test_no_more_threads_start_than_there_are_blocks(monkeypatch):
    found = started(monkeypatch)
    assert row_of(golden_alu(), sums(), threads=64).cases == len(SUMS) and len(found) == 1
    assert row_of(golden_alu(), random_checks(PAPER, "add", "fp16", count=9, seed=1, every=None), threads=64).cases > 9
    assert len(found) <= 1 + 2


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    ("refusal", "raised", "message"),
    [
        (
            RuntimeError("no thread"),
            ValueError,
            r"^--threads must be no more than .*, not 100000 \(no thread\): lower it",
        ),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_what_keeps_a_thread_from_starting_ends_the_others(monkeypatch, after, refusal, raised, message):
    """Else the whole check of every pair would be waited for."""
    (check,) = exhaustive_checks(PAPER, "add", None, None)
    before = threading.active_count()
    found = started(monkeypatch, refusal, after)
    with pytest.raises(raised, match=message):
        run(golden_alu(), check, threads=100_000, watch=ignore)
    assert len(found) == after and threading.active_count() == before


def t3(monkeypatch, *arguments: str, text: str = ""):
    """The command, with the golden ALU in place of the compiled one."""
    monkeypatch.setattr(validate_alu, "open_alu", lambda config: nullcontext(golden_alu()))
    return CliRunner().invoke(cli.main, ["validate", "alu", *arguments], input=text)


def test_the_command_prints_a_table_and_writes_a_file(monkeypatch, tmp_path):
    out = tmp_path / "alu"
    result = t3(monkeypatch, "--dtype", "fp16", "--op", "add", "--out", str(out), text="\n".join(SUMS))
    assert result.exit_code == 0, result.output
    assert "fp16 add" in result.stdout
    record = json.loads((out / "validate.json").read_text())
    assert record["parameters"]["nmc_latency"] == preset("paper").nmc_latency
    assert (record["hardware"], record["preset"], record["made"]) == (hardware_identity(), "paper", "text")
    (check,) = record["checks"]
    assert (check["op"], check["cases"], check["differences"], check["first"]) == ("add", 5, 0, [])


def test_the_command_checks_all_dtypes_and_operations(monkeypatch):
    result = t3(monkeypatch, "--random", "100")
    assert result.exit_code == 0, result.output
    for dtype in Dtype:
        for op in ("add", "min", "max"):
            assert f"{dtype.name.lower()} {op}" in result.stdout


def test_threads_that_do_not_start_are_one_message_of_the_command(monkeypatch):
    started(monkeypatch, RuntimeError("can't start new thread"))
    result = t3(monkeypatch, "--random", "1", "--threads", "100000")
    assert result.exit_code == 2 and result.stderr.splitlines()[-1].startswith("Error: --threads must be no more than ")


def test_the_command_fails_on_a_difference(monkeypatch, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    result = t3(monkeypatch, "--dtype", "fp16", "--op", "min", text=SUMS[0])
    assert result.exit_code == 1 and "1 of 1 cases came out wrong" in result.stderr
    assert "fp16 min of 3C00 (1) and 3C00 (1): 3C00 (1)" in result.stdout
    for arguments, message in (
        (("--exhaustive", "--random", "1"), "give one of cases, --exhaustive, --random, not --exhaustive and --random"),
        (("--exhaustive", "--dtype", "fp32"), "needs a dtype of 16 bits"),
        (("--random", "1", "--out", str(tmp_path)), "--out must be a new folder"),
        (("--random", "1", "--preset", "none"), "preset must be one of"),
        (("--random", "1", "--set", "nmc_lanes=3"), "nmc_lanes must be a power of two, not 3"),
    ):
        result = t3(monkeypatch, *arguments)
        assert result.exit_code == 2 and message in result.stderr, result.output


@pytest.mark.long
@pytest.mark.parametrize("lanes", [16, 4])
def test_the_compiled_alu_is_right(lanes):
    seed = 8
    print(f"seed {seed}")
    config = preset("small", nmc_lanes=lanes)
    with validate_alu.open_alu(config) as part:
        for check in random_checks(config, None, None, count=50_000, seed=seed, every=None):
            row = run(part, check, threads=2, watch=ignore)
            assert row.differences == 0, row.texts()
        row = row_of(part, text_check(config, "add", "fp16", SUMS, None))
    assert (row.cases, row.differences) == (len(SUMS), 0), row.texts()


@pytest.mark.slow
def test_the_compiled_alu_adds_every_pair_of_half_precision_numbers():
    (check,) = exhaustive_checks(PAPER, "add", "fp16", None)
    with validate_alu.open_alu(preset("paper")) as part:
        row = run(part, check, threads=2, watch=ignore)
    assert (row.cases, row.differences) == (1 << 32, 0), row.texts()
