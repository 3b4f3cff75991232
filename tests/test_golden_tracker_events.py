"""The golden Tracker's event queues against docs/hardware.md: lines of a chunk are added up while they wait."""

import pytest
from golden_bench import pack
from golden_tracker_scene import LINES, Scene, fill_set
from t3hdl.config import preset
from t3hdl.interface.layouts import Token


def overflowed(expected: int, **overrides: int) -> Scene:
    """Slot 0 has overflowed in both banks, one line each; the next turn is bank 0's."""
    scene = Scene(preset("small", **overrides))
    scene.load(expected=expected)
    fill_set(scene)
    for col in (1, 3, 4, 5):
        scene.send(col=col)
    scene.settle()
    assert scene.get("entries", "overflowed") == [4, 1]
    return scene


def both(scene: Scene, tokens: int) -> None:
    """Tokens of new tiles for both banks, one per bank and cycle."""
    for k in range(tokens):
        assert scene.get("token.0.ready", "token.1.ready") == [1, 1]
        scene.tick(**{f"token.{bank}": pack(Token, col=6 + 2 * k + bank, n=1) for bank in range(2)})


def test_an_overflowed_chunk_is_counted_at_the_rate_of_the_banks():
    scene = overflowed(2 + 2 * 50, event_queue=3)
    start = scene.bench.now
    both(scene, 50)
    scene.settle()
    # The last events are in E at start + 49 + 4, and are drained in the next two cycles.
    assert scene.chunks == [(start + 49 + 8, 0, 1)] and scene.errors() == []


@pytest.mark.parametrize(("expected", "done"), [(3, 7), (4, None), (5, 8), (6, 9)])
def test_which_events_become_one(expected, done):
    # Pushed by both banks at start + 4 and + 5. Drained: at + 5 bank 0 (1 line; what it pushes now is a new event),
    # at + 6 bank 1 (2 lines), at + 7 bank 0 (1 line).
    scene = overflowed(expected)
    start = scene.bench.now
    both(scene, 2)
    scene.settle()
    assert scene.chunks == ([(start + done, 0, 1)] if done else [])
    assert scene.errors() == ([] if expected == 6 else ["over_total"])


def test_lines_go_past_a_tile_and_another_chunk():
    scene = Scene()
    scene.load(row1=1, expected=100)
    scene.load(slot=1, row0=4, row1=5, expected=8, descriptor=1)
    fill_set(scene)
    scene.send(col=4)  # marks bank 0's row for chunk 0
    scene.send(col=1)
    scene.send(col=3)
    scene.send(row=4, col=1)  # marks bank 1's row for chunk 1: 1 line
    scene.settle()
    # Bank 1 gets chunk 1's lines around a tile, while bank 0 has the first turn of each two.
    start, bank1 = scene.bench.now, [(4, 3, 1), (0, 1, LINES - 1), (4, 3, 2), (4, 5, 3)]
    for k, (row, col, n) in enumerate(bank1):
        scene.tick(**{
            "token.0": pack(Token, col=6 + 2 * k, n=1), "token.1": pack(Token, row=row, col=col, n=n),
        })  # fmt: skip
    scene.settle()
    # Pushed at + 4 to + 7. Bank 1 is drained at + 6 (1 line), + 8 (the tile), + 10 (2 + 3 lines): 7 of 8.
    assert [tile[:4] for tile in scene.tiles] == [(start + 10, 0, 0, 1)]
    assert scene.chunks == [] and scene.errors() == []
    scene.send(row=4, col=3, n=1)
    scene.settle()
    assert [chunk[1:] for chunk in scene.chunks] == [(1, 1)]
