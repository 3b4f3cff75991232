"""Progress on a terminal and without one."""

import io
import re

import pytest
from rich.console import Console
from t3sim.cli import bars, console
from t3sim.engine import kernels
from t3sim.run.request import Preparation, Progress
from t3sim.study.runner import Status


def test_without_a_terminal_lines_are_as_long_as_they_need_to_be(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    console.plain_console().print("word " * 100)
    console.plain_console(stderr=True).print("[b]x[/b] :warning:")
    found = capsys.readouterr()
    assert found.out.count("\n") == 1
    assert found.err == "[b]x[/b] :warning:\n"


def test_a_terminal_has_its_own_width(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    assert console.plain_console().width == 60


def status(done: int, *, seconds: float = 5, running: tuple[str, ...] = ()) -> Status:
    """Of two runs ``done`` have finished, the last after five seconds, ``seconds`` after the first began."""
    return Status(
        done=done, total=2, cost_done=done, cost_total=3, running=running, failed=0, wall_seconds=seconds,
        last_seconds=5,
    )  # fmt: skip


def test_the_time_left_of_runs_falls_until_one_finishes():
    assert status(0).seconds_left is None
    assert [status(1, seconds=seconds).seconds_left for seconds in (5, 8, 15, 100)] == [10, 7, 0, 0]


@pytest.mark.parametrize("terminal", [True, False])
def test_labels_are_no_markup(terminal, monkeypatch):
    monkeypatch.setattr(console, "RUNS_SECONDS", 0.0)
    output = io.StringIO()
    plain = Console(file=output, force_terminal=terminal, color_system=None, width=100)
    with console.runs_progress(plain, "[/b] t3") as show:
        show(status(done=1, running=("[red]run",)))
    assert "[/b] t3" in output.getvalue() and "[red]run" in output.getvalue()


@pytest.mark.parametrize(
    ("kept", "said"),
    [(True, "t3: started"), (False, "t3: started (it compiles the simulator for a minute or two first)")],
)
def test_other_processes_compiling_is_announced_only_if_it_comes(kept, said, monkeypatch):
    monkeypatch.setattr(kernels, "is_kept", lambda *_: kept)
    output = io.StringIO()
    with console.runs_progress(Console(file=output, width=200), "t3") as show:
        assert output.getvalue() == "", "what is refused is refused before"
        show(status(done=0))
    assert output.getvalue() == f"{said}\n"


@pytest.mark.parametrize("width", range(40, 121, 8))
def test_progress_on_a_narrow_terminal_loses_no_number(width):
    output = io.StringIO()
    with console.progress(Console(file=output, force_terminal=True, color_system=None, width=width), "t3-mca") as show:
        show(at(757.5, 4))
    frame = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "\n", output.getvalue())
    assert {"t3-mca", "GEMM,", "757.5", "simulated"} <= set(frame.split())


def at(simulated_us: float, wall: float, done: float = 0.0) -> Progress:
    return Progress(simulated_ns=simulated_us * 1e3, work_done=done, phase="GEMM", wall_seconds=wall)


def statuses(*reports: Progress) -> list[str]:
    """What is said of each report, without a terminal."""
    output = io.StringIO()
    with console.progress(Console(file=output, width=200), "t3") as show:
        for report in reports:
            show(report)
    return [line.removeprefix("t3: ") for line in output.getvalue().splitlines()[1:]]


def test_status_has_simulated_time_rate_and_time_to_go(monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.0)
    assert statuses(at(0, 50), at(1, 51, 0.001), at(100, 54, 0.1), at(1100, 60, 0.99), at(1110, 61, 1.0)) == [
        "GEMM, 0 ns simulated",
        "GEMM, 1000 ns simulated, 1.000 us/s",
        "GEMM, 100.0 us simulated, 25.00 us/s, about 0:36 left",
        "GEMM, 1100 us simulated, 110.0 us/s, about 0:01 left",
        "GEMM, 1110 us simulated, 100.9 us/s",
    ]


@pytest.mark.parametrize("compiling", [0.0, 100.0])
def test_the_time_left_does_not_count_compiling(monkeypatch, compiling):
    """A run of 80 s at an even rate, whose hardware and kernels took any time before."""
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.0)
    said = statuses(*(at(10.0 * second, compiling + second, second / 80) for second in range(80)))
    left = [int(minutes) * 60 + int(seconds) for minutes, seconds in re.findall(r"about (\d+):(\d\d) left", str(said))]
    assert left == pytest.approx(range(78, 0, -1), abs=1), "from 2 % of the work on"


def test_the_time_left_follows_the_work_and_never_ends_before_it(monkeypatch):
    """However long simulated time stretches in the second half: the work goes on at its rate."""
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.0)
    said = statuses(*(at(1000 + second**3, second, second / 100) for second in range(100)))
    left = [int(re.findall(r"about 0:(\d\d) left", line)[0]) for line in said[50::10]]
    assert left == pytest.approx([50, 40, 30, 20, 10], abs=1)
    assert not any("0:00" in line for line in said)


def test_a_bar_is_gone_at_the_end():
    output = io.StringIO()
    with console.progress(Console(file=output, force_terminal=True, width=120), "t3") as show:
        show(at(100, 4, 0.1))
    assert output.getvalue().rstrip("\x1b[?25h").endswith("\x1b[2K")


def test_without_a_terminal_a_line_is_printed_now_and_then(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock[0])
    output = io.StringIO()
    with console.progress(Console(file=output), "t3") as show:
        for second in range(31):
            clock[0] = float(second)
            show(at(second, second))
    lines = output.getvalue().splitlines()
    assert lines[0].startswith("t3: started")
    assert [line.split(",")[1].strip() for line in lines[1:]] == [
        f"{second}.00 us simulated" for second in (10, 20, 30)
    ]


def test_progress_of_cases_has_their_number_rate_and_time_to_go():
    output = io.StringIO()
    with console.case_progress(Console(file=output, force_terminal=True, width=120), "fp16 add", 4_000_000) as show:
        show(1_000_000, 10.0)
    assert "1.0 million cases, 0.1 million/s, about 0:30 left" in output.getvalue()
    output = io.StringIO()
    with console.case_progress(Console(file=output, force_terminal=True, width=120), "fp16 add", None) as show:
        show(1_000_000, 10.0)
    assert "1.0 million cases, 0.1 million/s" in output.getvalue() and "left" not in output.getvalue()


def test_progress_of_a_build_says_what_runs_or_how_much_is_done(monkeypatch):
    monkeypatch.setattr(console, "RUNS_SECONDS", 0.0)
    output = io.StringIO()
    with console.fpga_progress(Console(file=output, width=120), "ulx3s", 2) as show:
        for step in ("synthesis", "seed 1"):
            show(step, "begins")
            show(step, "")
    lines = [line.split(", ")[-1] for line in output.getvalue().splitlines()[1:]]
    assert lines == ["synthesis: begins", "1 of 2 steps", "seed 1: begins", "2 of 2 steps"]


def prepared(name, done: int, total: int | None = None) -> Preparation:
    return Preparation(name=name, done=done, total=total)


def test_what_a_run_needs_first_has_a_bar_of_its_own_until_the_run_begins():
    output = io.StringIO()
    with console.progress(Console(file=output, force_terminal=True, color_system=None, width=100), "t3") as show:
        show(prepared("kernels", 17))
        show(prepared("hardware", 3, 9))
        (display,) = bars._displays.values()
        assert [task.description for task in display.tasks] == ["t3", "kernels", "hardware"]
        assert [task.fields["status"] for task in display.tasks[1:]] == ["functions compiled: 17", "3 of 9 parts ready"]
        assert display.tasks[2].percentage == pytest.approx(100 / 3)
        show(at(100, 4, 0.1))
        assert [task.description for task in display.tasks] == ["t3"]
    assert bars._displays == {}


def test_a_log_says_what_a_run_needs_first(monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.0)
    said = statuses(prepared("hardware", 0, 9), prepared("kernels", 1), prepared("hardware", 9, 9), at(1, 51, 0.001))
    assert said == [
        "hardware: its parts are compiled, once",
        "hardware: 0 of 9 parts ready",
        "kernels: the models' functions are compiled, once",
        "kernels: functions compiled: 1",
        "hardware: 9 of 9 parts ready",
        "GEMM, 1000 ns simulated",
    ]


def test_several_at_a_time_share_a_terminal():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    with console.progress(terminal, "t3") as first:
        with console.progress(terminal, "t3-mca") as second:
            second(at(100, 4, 0.1))
            first(at(200, 4, 0.2))
            (display,) = bars._displays.values()
            assert [task.description for task in display.tasks] == ["t3", "t3-mca"]
        assert [task.description for task in display.tasks] == ["t3"]
