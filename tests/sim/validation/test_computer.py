"""What a measurement of real time says of the computer."""

import os

import pytest
from t3sim.validation import computer as subject


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nmodel name\t: Another\n", "A Processor @ 2 GHz"),
        ("model name\t:\n", "an unnamed riscv64"),
        (None, "an unnamed riscv64"),
    ],
)
def test_the_processor_is_named(monkeypatch, tmp_path, text, named):
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(subject, "_CPUINFO", path)
    monkeypatch.setattr(subject.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert subject.computer() == f"2 cores of {named}"
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert subject.computer().startswith("1 core of ")
