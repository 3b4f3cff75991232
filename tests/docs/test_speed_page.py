"""The page of the simulation's speed: what was measured, and every miss."""

import dataclasses

import pytest

from docs.pages import speed
from docs.pages.speed import KEPT, SCALING


def test_a_missed_target_is_named_and_counted():
    bench, scaling = speed.read()
    first = bench.targets[0]
    for limit, missed in ((first.measured * 2, True), (first.measured / 2, False)):
        target = dataclasses.replace(first, limit=limit, ceiling=False)
        text = speed.text(dataclasses.replace(bench, targets=[target]), scaling)
        assert ("**missed**" in text) is missed and f"1 figures with a target, {int(missed)} missed." in text


def test_a_ratio_of_contention_says_of_how_many_pairs_it_is():
    bench, scaling = speed.read()
    for ratios, of in (
        ((), "of one pair of runs"),
        ((0.98, 1.0, 1.1), "the median of 3 pairs of runs in turns, 0.980, "),
    ):
        text = " ".join(speed.text(dataclasses.replace(bench, contention_ratios=ratios), scaling).split())
        assert of in text and "is noise" in text


def test_all_sizes_are_there():
    _, scaling = speed.read()
    assert [point.value for point in scaling.of("gpus")] == [2, 4, 8, 16, 32, 64]
    assert [point.value for point in scaling.of("tokens")] == [1024 << i for i in range(6)]
    text = speed.text(*speed.read())
    assert [size in text for size in scaling.left_out] == [True] and scaling.left_out[0].startswith("65536 tokens: ")
    assert all(f"| {point.value:,} | {point.seconds:.1f} |" in text for point in scaling.points)


@pytest.mark.parametrize("name", ["KEPT", "SCALING"])
def test_a_record_of_another_version_is_refused(monkeypatch, tmp_path, name):
    path = tmp_path / "old.json"
    path.write_text('{"schema": 1}')
    monkeypatch.setattr(speed, name, path)
    with pytest.raises(ValueError, match=r"old\.json is of another version \(.*\): run `t3 bench` again"):
        speed.page()


def test_both_records_are_kept():
    assert KEPT.exists() and SCALING.exists() and SCALING.with_suffix(".png").exists()
