"""Progress on a terminal and without one."""

import io

import pytest
from rich.console import Console
from t3sim import console
from t3sim.request import Progress


def at(simulated_us: float, wall: float, total_us: float | None = 1000.0) -> Progress:
    total = None if total_us is None else total_us * 1e3
    return Progress(simulated_ns=simulated_us * 1e3, estimated_total_ns=total, phase="GEMM", wall_seconds=wall)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (at(0, 0), "GEMM, 0.0 us simulated"),
        (at(100, 4), "GEMM, 100.0 us simulated, 25.0 us/s, about 0:36 left"),
        (at(10, 4), "GEMM, 10.0 us simulated, 2.5 us/s\n"),  # compilation may be in it, so no estimate yet
        (at(1100, 4), "GEMM, 1100.0 us simulated, 275.0 us/s, about 0:00 left"),
        (at(100, 4, None), "GEMM, 100.0 us simulated, 25.0 us/s"),
    ],
)
def test_status_has_simulated_time_rate_and_time_to_go(now, text):
    output = io.StringIO()
    with console.progress(Console(file=output, force_terminal=True, width=120), "t3") as show:
        show(now)
    assert text in output.getvalue()
    assert output.getvalue().rstrip("\x1b[?25h").endswith("\x1b[2K"), "the bar is gone at the end"


def test_without_a_terminal_a_line_is_printed_now_and_then(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    output = io.StringIO()
    with console.progress(Console(file=output), "t3") as show:
        for second in range(31):
            clock[0] = float(second)
            show(at(second, second))
    lines = output.getvalue().splitlines()
    assert lines[0].startswith("t3: started")
    assert [line.split(",")[1].strip() for line in lines[1:]] == [f"{second}.0 us simulated" for second in (10, 20, 30)]


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
