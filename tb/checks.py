"""What must hold at the ports of every part, whatever it does: the scoreboard, the stream rules, no unknown bits.

Every check raises AssertionError with the first cycle that breaks it, the port, and what happened just before.
"""

import numpy as np
from t3hdl import register_map as regs

from words import UNCOMPARED, Ports, Trace, Words, full_mask, streams_of, valid_of

HISTORY = 6
"""Cycles that a failure shows."""


class Scoreboard:
    """Compares a trace's outputs with those of the golden model, payloads only while they are valid."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        outputs = ports.words.outputs
        self._known = full_mask(outputs, max(1, ports.words.output_words))
        compared = {port: place for port, place in outputs.items() if port not in UNCOMPARED}
        self._mask = full_mask(compared, max(1, ports.words.output_words))
        self._payloads = [(port, valid) for port in outputs if (valid := valid_of(port, outputs))]

    def check(self, trace: Trace, expected: Words, unknown: dict[int, int], start: int) -> None:
        """``unknown`` has the unknown bits by cycle; ``start`` is the number of the trace's first cycle."""
        count = self._mask.size
        unknown_bits = np.zeros_like(trace.outputs)
        for cycle, bits in unknown.items():
            unknown_bits[cycle] = np.frombuffer(bits.to_bytes(8 * count, "little"), np.uint64)
        golden = Trace(trace.ports, trace.inputs, expected)
        meaning = np.full(trace.outputs.shape, ~np.uint64(0))
        for port, valid in self._payloads:
            first, bits = self._ports.words.outputs[port]
            meaning[:, first : first + -(-bits // 64)] &= np.where(golden.is_set(valid), ~np.uint64(0), 0)[:, None]
        self._fail_if(unknown_bits & self._known & meaning, trace, expected, start, "has unknown bits")
        self._fail_if((trace.outputs ^ expected) & self._mask & meaning, trace, expected, start, "differs")

    def _fail_if(self, wrong: Words, trace: Trace, expected: Words, start: int, what: str) -> None:
        if not wrong.any():
            return
        cycle = int(np.argmax(wrong.any(axis=1)))
        word = int(np.argmax(wrong[cycle]))
        port = next(
            port for port, (first, bits) in self._ports.words.outputs.items() if first <= word < first + -(-bits // 64)
        )
        raise AssertionError(
            f"{port} {what} in cycle {start + cycle}, word {word}: hardware {trace.outputs[cycle, word]:#x}, "
            f"golden model {expected[cycle, word]:#x}\n{history(trace, cycle, start)}"
        )


def history(trace: Trace, cycle: int, start: int) -> str:
    """The ports that are not 0, in the last cycles up to ``cycle``."""
    rows = range(max(0, cycle - HISTORY), cycle + 1)
    return "\n".join(
        f"cycle {start + row}: "
        + " ".join(
            f"{port}={value:#x}"
            for side, words in ((trace.ports.words.inputs, trace.inputs), (trace.ports.words.outputs, trace.outputs))
            for port, (first, bits) in side.items()
            if (value := int.from_bytes(words[row, first : first + -(-bits // 64)].tobytes(), "little"))
        )
        for row in rows
    )


class StreamRules:
    """Rule 1 of docs/hardware.md on every stream, in both directions: a valid item stays as it is until it moves.

    Only a disarm takes items back.
    """

    def __init__(self, ports: Ports) -> None:
        words = ports.words
        self.streams = streams_of(words.inputs, "valid") + streams_of(words.outputs, "valid")
        self._ports = ports

    def check(self, trace: Trace, start: int) -> None:
        """``start`` is the number of the trace's first cycle."""
        disarm = disarms(trace)
        for stream in self.streams:
            is_input, (first, bits) = self._ports.place(f"{stream}.payload")
            rows = trace.inputs if is_input else trace.outputs
            payload = rows[:, first : first + -(-bits // 64)]
            valid = trace.is_set(f"{stream}.valid")
            waits = valid & ~trace.is_set(f"{stream}.ready") & ~disarm
            fell = waits[:-1] & ~valid[1:]
            changed = waits[:-1] & valid[1:] & (payload[1:] != payload[:-1]).any(axis=1)
            for broken, what in ((fell, "valid fell before the transfer"), (changed, "the waiting payload changed")):
                if broken.any():
                    cycle = int(np.argmax(broken)) + 1
                    raise AssertionError(
                        f"{stream}: {what} in cycle {start + cycle}\n{history(trace, cycle, start)}"
                    )


def disarms(trace: Trace) -> np.ndarray:
    """Whether the part is told to disarm, in every cycle."""
    if "config_valid" not in trace:
        return np.zeros(len(trace), bool)
    bits = trace.get("config", "data") & np.uint64((1 << regs.Control.size) - 1)
    disarm = bits >> np.uint64(regs.Control["disarm"].offset) & np.uint64(1)
    return trace.is_set("config_valid") & (trace.get("config", "address") == regs.CONTROL) & (disarm != 0)
