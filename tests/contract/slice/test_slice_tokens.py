"""Compiled and golden slice merge the tokens of tiles that come in turns as docs/hardware/slice.md says."""

import random
from collections import Counter

import pytest
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import BURST_LINES, MemoryRequest, Token
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part

from tb.lockstep import Lockstep
from tb.stimulus.base import pack
from tb.stimulus.slice import SliceInTurns

SEED = 20261121
LIMIT = (1 << Token["n"].shape) - BURST_LINES

CONFIGS = {
    "small": preset("small"),
    "protected": preset("small", protect=True),
    "performed": preset("small", count_on="performed"),
    "paper": preset("paper"),
    "wide": preset("small", ranges=4, contexts=16, token_queue=13, count_on="performed", protect=True),
}


class TokenRule:
    """The rule of the token queue in its plainest form; ``hit`` counts how often each case of it came up."""

    def __init__(self) -> None:
        self.entries: list[list[int]] = []  # name and count, the head first
        self.hit: Counter[str] = Counter()

    def step(self, pushed: tuple[int, int] | None, popped: int | None) -> None:
        """One cycle: name and lines of a counted burst, and the token that left, or None."""
        waiting = self.entries[1:]
        if popped is not None:
            name, n = self.entries.pop(0)
            assert popped == name | n << Token["n"].offset
        if pushed is None:
            return
        name, lines = pushed
        same = [entry for entry in waiting if entry[0] == name]
        entry = next((entry for entry in same if entry[1] < LIMIT), None)
        if entry:
            self.hit["into the middle"] += entry is not self.entries[-1]
            self.hit["into the last"] += entry is self.entries[-1]
            self.hit["while the head leaves"] += popped is not None
            self.hit["into the middle while the head leaves"] += popped is not None and entry is not self.entries[-1]
            self.hit["into what becomes the head"] += entry is self.entries[0]
            self.hit["behind a full one"] += entry is not same[0]
            entry[1] += lines
        else:
            self.hit["appended behind a full one"] += bool(same)
            self.hit["appended behind the head of its name"] += bool(self.entries) and self.entries[0][0] == name
            self.entries.append([name, lines])


def _pushed(bench: Lockstep, config: T3Config) -> tuple[int, int] | None:
    """Name and lines of the burst that counts in the cycle that was just stepped."""
    if config.count_on == "accepted":
        word = bench.moved.get("dram")
    else:
        word = bench.driven("update_done") if bench.driven("update_done_valid") else None
    if word is None or not _field(word, "tagged"):
        return None
    name = pack(Token, epoch=SliceInTurns.EPOCH, row=_field(word, "row"), col=_field(word, "col"))
    return name, _field(word, "length") + 1


def _field(word: int, name: str) -> int:
    field = MemoryRequest[name]
    return word >> field.offset & (1 << field.shape) - 1


@pytest.mark.parametrize(
    "size",
    [
        "small",
        pytest.param("protected", marks=pytest.mark.long),
        *(pytest.param(size, marks=pytest.mark.slow) for size in ("performed", "paper", "wide")),
    ],
)
def test_tokens_of_tiles_in_turns(size: str) -> None:
    config = CONFIGS[size]
    rtl, golden = compiled_part(config, "slice"), golden_hardware(config)
    bench = Lockstep({"rtl": rtl.part_type, "golden": golden.parts["slice"]}, title=f"tokens of {size}, seed {SEED}")
    stimulus, rule = SliceInTurns(bench, config, random.Random(SEED)), TokenRule()
    for _ in range(stimulus.cycles):
        stimulus.drive()
        bench.step()
        rule.step(_pushed(bench, config), bench.moved.get("token"))
    print(f"seed {SEED}: {dict(rule.hit)}")
    assert len(rule.hit) == 8 and min(rule.hit.values()) > 0, "a case of the rule never came up"
    rtl.free()
    golden.close()
