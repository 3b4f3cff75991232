"""A slot is not loaded again before the last events of its old chunk are counted: which configurations are legal."""

from itertools import product

import pytest
from t3hdl.config import preset

LOADER_CYCLES = 12
"""From ``chunk_done`` to the next load of its slot, beside one cycle for each block (docs/hardware/trigger.md)."""


@pytest.mark.parametrize(("event_queue", "banks"), list(product((3, 4, 5, 8, 16), (1, 2, 4, 8))))
def test_blocks_give_the_tracker_time_to_count_old_events(event_queue: int, banks: int) -> None:
    """A bank holds a token in M, one in R, and its queue of finished tiles. Banks and collection drain one thing a
    cycle, in turns, which is counted a cycle later."""
    held = (banks + 1) * (2 + event_queue)
    enough = next(2**exponent for exponent in range(7) if LOADER_CYCLES + 2**exponent > held) if held < 76 else None
    sizes = {"event_queue": event_queue, "tracker_banks": banks, "tracker_sets": 64, "row_index_bits": 3}
    for blocks in (1, 2, 4, 8, 16, 32, 64):
        if enough is not None and blocks >= enough:
            assert preset("small", **sizes, blocks=blocks).blocks == blocks
        else:
            with pytest.raises(ValueError, match="blocks must be at least"):
                preset("small", **sizes, blocks=blocks)
