"""The digest of the sources that decide a result: words do not count, values do."""

import pytest
from t3sim.study import sources

MODULE = '''"""A model."""

LATENCY = 5
"""Cycles."""


def wait(cycles):
    """Waits."""
    return cycles + LATENCY  # a comment
'''


def code(folder, text):
    path = folder / "model.py"
    path.write_text(text)
    return sources._code(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A model", "The model"),
        ("Cycles", "Clocks"),
        ("Waits", "Waits longer"),
        ("  # a comment", ""),
        ("\n\n\n", "\n\n"),
    ],
)
def test_words_and_layout_do_not_count(tmp_path, old, new):
    assert code(tmp_path, MODULE.replace(old, new)) == code(tmp_path, MODULE)


@pytest.mark.parametrize(("old", "new"), [("= 5", "= 6"), ("cycles + LATENCY", "cycles"), ("def wait", "def stay")])
def test_values_and_names_do(tmp_path, old, new):
    assert code(tmp_path, MODULE.replace(old, new)) != code(tmp_path, MODULE)


@pytest.mark.long
def test_a_golden_run_does_not_depend_on_the_rtl_of_the_parts(monkeypatch):
    code = sources._code

    def changed(part):
        """The digests of runs on golden hardware and in RTL, with a part of the source changed."""
        monkeypatch.setattr(sources, "_code", lambda path: code(path) + str(path).endswith(part) * "changed")
        sources.source_digest.cache_clear()
        return sources.digest_for("golden"), sources.digest_for("rtl")

    golden, rtl = changed("no file")
    assert golden != rtl
    assert changed("t3hdl/tracker/tracker.py")[0] == golden and changed("t3hdl/tracker/tracker.py")[1] != rtl
    for both in ("t3sim/hardware/golden/slice/arbiter.py", "t3hdl/config.py", "t3sim/engine/llc.py"):
        assert changed(both)[0] != golden and changed(both)[1] != rtl
    monkeypatch.undo()
    sources.source_digest.cache_clear()


def test_the_digest_is_that_of_a_program_and_what_it_imports():
    assert sources.source_digest() != sources.source_digest("t3sim.dram.hbm")
