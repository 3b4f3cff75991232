"""Shares of the slow tests: together they are all of them, and none is empty or much longer than the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shards import seconds, shard_of

SLOWEST, OTHERS = "test_boards_netlist.py::test_a_netlist[ecp5]", [f"test_part.py::test_it[{i}]" for i in range(99)]
TESTS = [SLOWEST, *OTHERS]


@pytest.mark.parametrize("count", [1, 2, 12, len(TESTS)])
def test_every_test_is_in_one_share_and_no_share_is_empty(count):
    shards = shard_of(TESTS, count)
    assert shards.keys() == set(TESTS)
    assert set(shards.values()) == set(range(1, count + 1))


def test_shares_do_not_depend_on_the_order_of_collection():
    assert shard_of(reversed(TESTS), 12) == shard_of(TESTS, 12)


def test_no_share_is_longer_than_the_others_by_more_than_a_test():
    shards = shard_of(TESTS, 2)
    loads = [sum(seconds(test) for test in TESTS if shards[test] == share) for share in (1, 2)]
    assert max(loads) - min(loads) <= seconds(OTHERS[0])


def chosen(folder: Path, *options: str) -> tuple[int, list[str], str]:
    """Exit status, node IDs and error output of a collection with our hook, in a folder of five slow tests."""
    (folder / "test_five.py").write_text(
        "import pytest\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('i', range(5))\ndef test_slow(i): pass\n"
        "def test_quick(): pass\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes minutes\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--collect-only", "-q", "-m", "slow", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "::" in line], done.stderr


def test_pytest_runs_one_share_of_the_tests_that_it_was_asked_for(tmp_path):
    found = [chosen(tmp_path, "--shard", f"{number}/3") for number in (1, 2, 3)]
    assert [status for status, _, _ in found] == [0, 0, 0]
    assert sorted(test for _, tests, _ in found for test in tests) == [
        f"test_five.py::test_slow[{i}]" for i in range(5)
    ]
    assert max(len(tests) for _, tests, _ in found) == 2


def test_a_share_that_would_be_empty_is_no_success(tmp_path):
    status, tests, _ = chosen(tmp_path, "--shard", "6/6")
    assert (status, tests) == (5, [])


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "-1/3"])
def test_a_share_that_does_not_exist_is_refused(tmp_path, text):
    status, _, error = chosen(tmp_path, f"--shard={text}")
    assert status == 4 and f"--shard {text}: a shard is i/N" in error
