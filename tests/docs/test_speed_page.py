"""The page of the simulation's speed: what was measured, and every miss."""

import dataclasses

import pytest

from docs.pages import speed
from docs.pages.speed import KEPT, SCALING


def test_a_missed_target_is_named_and_counted():
    bench, scaling, start = speed.read()
    first, *others = bench.targets
    for limit, missed in ((first.measured * 2, True), (first.measured / 2, False)):
        targets = [dataclasses.replace(first, limit=limit, ceiling=False), *others]
        text = speed.text(dataclasses.replace(bench, targets=targets), scaling, start)
        (row,) = (line for line in text.splitlines() if line.startswith(f"| {first.name} |"))
        assert ("**missed**" in row) is missed
        count = sum(not target.ok for target in targets)
        assert f"{count} of {len(targets)} figures of `t3 bench` miss their target, and " in text


def test_what_was_timed_by_hand_is_held_against_its_targets_too():
    bench, scaling, start = speed.read()
    assert len(start.targets) == 3
    late = [
        dataclasses.replace(row, measured=row.limit * factor)
        for row, factor in zip(start.targets, (0.9, 1.1, 0.9), strict=True)
    ]
    text = " ".join(speed.text(bench, scaling, dataclasses.replace(start, commit="0123456", targets=late)).split())
    assert " and 1 of 3 of `make run`." in text and "on a clone of 0123456, " in text


def test_a_record_without_its_rows_is_refused():
    bench, scaling, start = speed.read()
    for begin in (speed.MIRRORED, speed.DRAM):
        targets = [row for row in bench.targets if not row.name.startswith(begin)]
        with pytest.raises(ValueError, match="run `t3 bench` again"):
            speed.text(dataclasses.replace(bench, targets=targets), scaling, start)


def test_tile_marks_are_those_of_the_record():
    bench, scaling, start = speed.read()
    marked, plain = (
        dataclasses.replace(scaling, provenance=scaling.provenance.model_copy(update={"settings": settings}))
        for settings in ({"hardware.tile_marks": 4096}, {})
    )
    assert "these runs had 4,096." in speed.text(bench, marked, start)
    assert "more tile marks" not in speed.text(bench, plain, start)


def test_what_keeps_a_run_from_its_target_is_of_the_record():
    bench, scaling, start = speed.read()
    rates = [row for row in bench.targets if row.name.startswith("HBM model, ")]
    targets = [row for row in bench.targets if row not in rates]
    targets += [dataclasses.replace(rates[0], measured=bench.lines / seconds) for seconds in (2.0, 5.0)]
    text = " ".join(speed.text(dataclasses.replace(bench, targets=targets), scaling, start).split())
    assert f"the RTL's evaluations take {bench.rtl_seconds:.1f} s in loops" in text
    assert "would take the DRAM model 2.0 to 5.0 s at its rates" in text


def test_a_ratio_of_contention_says_of_how_many_pairs_it_is():
    bench, scaling, start = speed.read()
    for ratios, of in (
        ((), "of one pair of runs. Another pair of runs gives another one."),
        (
            (0.98, 1.0, 1.1),
            "the median of 3 pairs of runs in turns, 0.980, 1.000, 1.100. The pairs differ by 0.12: ",
        ),
    ):
        text = " ".join(speed.text(dataclasses.replace(bench, contention_ratios=ratios), scaling, start).split())
        assert of in text


def test_all_sizes_are_there():
    _, scaling, _ = speed.read()
    assert [point.value for point in scaling.of("gpus")] == [2, 4, 8, 16, 32, 64]
    assert [point.value for point in scaling.of("tokens")] == [1024 << i for i in range(7)]
    assert scaling.left_out == ()
    text = speed.text(*speed.read())
    assert all(f"| {point.value:,} | {point.seconds:.1f} |" in text for point in scaling.points)


def test_sizes_without_room_are_named():
    bench, scaling, start = speed.read()
    assert "refuses the sizes below" not in speed.text(bench, scaling, start)
    text = speed.text(bench, dataclasses.replace(scaling, left_out=("65536 tokens: no room",)), start)
    assert "refuses the sizes below" in text and "\n- 65536 tokens: no room\n" in text


@pytest.mark.parametrize("name", ["KEPT", "SCALING", "START"])
def test_a_record_of_another_version_is_refused(monkeypatch, tmp_path, name):
    path = tmp_path / "old.json"
    path.write_text('{"schema": 1}')
    monkeypatch.setattr(speed, name, path)
    with pytest.raises(ValueError, match=r"old\.json is of another version \(.*\): measure again"):
        speed.page()


def test_both_records_are_kept():
    assert KEPT.exists() and SCALING.exists() and SCALING.with_suffix(".png").exists()
