"""``t3 waves`` on the command line: its files, what it says, and what it refuses before the run."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST
from t3sim.waves import files
from t3sim.waves.compare import Difference

TOY = ("--machine", "toy", "--m", "256", "--n", "64", "--k", "64", "--tp", "2")
GOLDEN = (*TOY, "--hardware", "golden")
WINDOW = ("--from-ns", "700", "--to-ns", "720.5")


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_rtl_and_golden_model_are_written_side_by_side(tmp_path: Path):
    result = t3("waves", *TOY, *WINDOW, "--parts", "tracker,slice.3", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "GPU 0, tracker, slice_3: 700 ns to 721 ns (21 clocks)" in result.stdout
    assert "the ports of RTL and golden model are identical in every clock" in result.stdout
    assert str(tmp_path / "out") in result.stdout and "t3-mca (golden): started" in result.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["golden.gtkw", "golden.sucl", "golden.vcd", "rtl.gtkw", "rtl.sucl", "rtl.vcd", MANIFEST]
    assert '[dumpfile] "rtl.vcd"' in (tmp_path / "out" / "rtl.gtkw").read_text()
    assert "$scope module t3_tracker $end" in (tmp_path / "out" / "rtl.vcd").read_text()
    assert "t3_tracker" not in (tmp_path / "out" / "golden.vcd").read_text()


def test_an_fst_of_the_ports_alone(tmp_path: Path):
    pytest.importorskip("pylibfst", reason="there is no wheel of pylibfst for this Python")
    options = ("--parts", "tracker", "--no-internals", "--no-golden", "--format", "fst")
    result = t3("waves", *TOY, *WINDOW, *options, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "within the parts" not in result.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["rtl.fst", "rtl.gtkw", "rtl.sucl", MANIFEST]
    assert '[dumpfile] "rtl.fst"' in (tmp_path / "out" / "rtl.gtkw").read_text()


def test_the_window_is_around_a_trigger_if_none_is_given(tmp_path: Path):
    result = t3("waves", *GOLDEN, "--tp", "4", "--around", "2", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "(1000 clocks)" in result.stdout and "identical" not in result.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["golden.gtkw", "golden.sucl", "golden.vcd", MANIFEST]


def test_a_difference_is_told_with_its_place_and_the_files_stay(tmp_path: Path, monkeypatch):
    found = Difference(cycle=710, signal="t3.gpu0.trigger.live", values=("0x1", "0x2"))
    monkeypatch.setattr(files, "first_difference", lambda one, other: found)
    result = t3("waves", *TOY, *WINDOW, "-o", tmp_path / "out")
    assert result.exit_code == 1, result.output
    assert "differ first at 710 ns in t3.gpu0.trigger.live: RTL 0x1, golden model 0x2" in result.stderr
    assert (tmp_path / "out" / "rtl.vcd").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--parts", "core"), "--parts must name parts of the unit (slice.0 to slice.3, "),
        (("--parts", "tracker,tracker"), "--parts must name each part once"),
        (("--gpu", "2"), "--gpu must be one that is simulated, 0 to 1, not 2"),
        (("--mirror", "--gpu", "1"), "--gpu must be one that is simulated, 0 to 0, not 1"),
        (("--policy", "ideal-overlap"), "--policy must be one that is simulated"),
        (("--from-ns", "5"), "--from-ns and --to-ns go together: give --to-ns, too"),
        (("--to-ns", "5"), "--from-ns and --to-ns go together: give --from-ns, too"),
        (("--from-ns", "5", "--to-ns", "5"), "--from-ns must be at least 0 and less than --to-ns, not 5 and 5"),
        (("--from-ns", "-1", "--to-ns", "5"), "--from-ns must be at least 0"),
        (("--from-ns", "nan", "--to-ns", "5"), "--from-ns must be at least 0"),
        (("--from-ns", "0", "--to-ns", "inf"), "--from-ns must be at least 0"),
        (
            ("--from-ns", "0", "--to-ns", "1e300"),
            "the window must have 1 to 20000 memory clocks (of 1000000 with",
        ),
        (("--from-ns", "0", "--to-ns", "2e6", "--no-internals"), "1 to 1000000 memory clocks, not 2000000: change"),
        (("--from-ns", "0.1", "--to-ns", "0.2", "--no-internals"), "1 to 1000000 memory clocks, not 0"),
        ((), "there are 0 in this run, not 1: two GPUs send no chunk by DMA; give --from-ns and --to-ns"),
        (("--tp", "4", "--around", "9"), "there are 2 in this run, not 9: choose 1 to 2, or give"),
        (("--tp", "4", "--policy", "sequential"), "there are 0 in this run, not 1: policy sequential sends none"),
        (("--around", "0"), "--around must be the number of a trigger, from 1 on, not 0"),
        (("--around", "1", *WINDOW), "give either --around, or --from-ns and --to-ns, not both"),
        (
            ("--no-golden", "--hardware", "golden"),
            "records the golden model alone, which has no internal signals: leave out --no-golden",
        ),
        (("--internals", "--hardware", "golden"), "no internal signals: leave out --internals"),
        (("--format", "ghw"), "'ghw' is not one of 'vcd', 'fst'"),
    ],
)
def test_what_has_no_waves_is_refused_before_the_run(tmp_path: Path, options, message):
    result = t3("waves", *TOY, *options, "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert message in result.stderr and result.stderr.count("Error:") == 1 and "started" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_without_its_library_there_is_no_fst(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    result = t3("waves", *GOLDEN, *WINDOW, "--format", "fst", "-o", tmp_path / "out")
    assert result.exit_code == 2 and "pip install pylibfst, or choose --format vcd" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_is_needed():
    result = t3("waves", *GOLDEN, *WINDOW)
    assert result.exit_code == 2 and "Missing option '--out'" in result.stderr


def test_other_files_are_never_replaced(tmp_path: Path):
    (tmp_path / "rtl.vcd").write_text("mine")
    result = t3("waves", *GOLDEN, *WINDOW, "-o", tmp_path)
    assert result.exit_code == 2 and "--out must be a new folder" in result.stderr and "started" not in result.stderr
    assert (tmp_path / "rtl.vcd").read_text() == "mine"


def test_a_run_that_is_over_before_the_window_is_one_message_and_leaves_no_folder(tmp_path: Path):
    result = t3("waves", *GOLDEN, "--from-ns", "90000", "--to-ns", "91000", "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert "the window begins at 90000 ns. Choose an earlier one" in result.stderr
    assert result.stderr.count("Error:") == 1 and not (tmp_path / "out").exists()
