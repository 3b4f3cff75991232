"""What a round of each self-testing design must report, by the reference."""

from t3fpga.selftest.tracker.tracker_only_test import TrackerOnlyTest
from t3fpga.selftest.tracker.tracker_test import TrackerTest
from t3hdl.config import T3Config

from tests.fpga.selftest_bench import Line
from tests.fpga.selftest_reference import (
    checksum,
    checksum_of_tracker,
    checksums_of_commands,
    counts,
    counts_of_tracker,
    dropped,
    dropped_of_tracker,
)


def check_good(line: Line, test: type, config: T3Config) -> None:
    """A good round: every number follows from the seed."""
    wavefronts = min(2, config.wavefronts)
    numbers = counts_of_tracker if test is TrackerOnlyTest else counts
    assert line.what == "pass"
    assert (line.updates, line.tiles, line.completed) == numbers(line.seed, wavefronts)
    if test is TrackerOnlyTest:
        assert line.checksum == checksum_of_tracker(line.seed, wavefronts)
    elif test is TrackerTest:
        assert line.checksum in checksums_of_commands(line.seed)
    else:
        assert line.checksum == checksum(line.seed, config.dtypes)


def check_dropped(line: Line, test: type, config: T3Config) -> None:
    """A round in which the first incoming update was lost: it names what is short of it."""
    wavefronts = min(2, config.wavefronts)
    detail = dropped_of_tracker if test is TrackerOnlyTest else dropped
    assert (line.what, line.detail) == ("lost", detail(line.seed, wavefronts))
    assert line.updates == counts(line.seed, wavefronts)[0] - 1
