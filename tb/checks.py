"""What must hold at the ports of every part, whatever it does: the scoreboard, the stream rules, no unknown bits.

Every check raises AssertionError with the first cycle that breaks it, the port, and what happened just before.
"""

from collections.abc import Iterable

import numpy as np
from t3hdl.interface.words import word_count

from tb.coverage_bins import control
from tb.words import UNCOMPARED, Ports, Stream, Trace, Words, full_mask, valid_of

HISTORY = 6
"""Cycles that a failure shows."""
Unknown = dict[int, int]
"""Bits of an output row that are neither 0 nor 1, by cycle."""


def history(trace: Trace, cycle: int, start: int) -> str:
    """The ports that are not 0, in the last cycles up to ``cycle``."""
    return "\n".join(
        f"cycle {start + row}: " + " ".join(f"{port}={value:#x}" for port, value in trace.row(row).items())
        for row in range(max(0, cycle - HISTORY), cycle + 1)
    )


class OutputChecks:
    """Checks outputs bit by bit, payloads only while they are valid.

    In every check, ``start`` is the number of the trace's first cycle, for messages.
    """

    def __init__(self, ports: Ports) -> None:
        outputs = ports.words.outputs
        count = max(1, ports.words.output_words)
        self._outputs = outputs
        self._ports = full_mask(outputs, count)
        self._compared = full_mask({port: place for port, place in outputs.items() if port not in UNCOMPARED}, count)
        self._payloads = [(port, valid) for port in outputs if (valid := valid_of(port, outputs))]

    def check_known(self, trace: Trace, unknown: Unknown, start: int) -> None:
        """No output has an unknown bit after reset."""
        if not unknown:
            return
        bits = np.zeros_like(trace.outputs)
        for cycle, value in unknown.items():
            bits[cycle] = np.frombuffer(value.to_bytes(bits[cycle].nbytes, "little"), np.uint64)
        wrong = bits & self._ports & self._meaning(trace)
        if wrong.any():
            cycle, _, port = self._first(wrong)
            raise AssertionError(f"{port} has unknown bits in cycle {start + cycle}\n{history(trace, cycle, start)}")

    def check_equal(self, trace: Trace, expected: Words, start: int) -> None:
        """Outputs are those of the golden model."""
        wrong = (trace.outputs ^ expected) & self._compared
        wrong &= self._meaning(Trace(trace.ports, trace.inputs, expected))
        if wrong.any():
            cycle, word, port = self._first(wrong)
            raise AssertionError(
                f"{port} in cycle {start + cycle}, word {word}: hardware {trace.outputs[cycle, word]:#x}, "
                f"golden model {expected[cycle, word]:#x}\n{history(trace, cycle, start)}"
            )

    def _meaning(self, trace: Trace) -> Words:
        """Ones where an output means something."""
        meaning = np.full(trace.outputs.shape, ~np.uint64(0))
        for port, valid in self._payloads:
            first, bits = self._outputs[port]
            meaning[~trace.is_set(valid), first : first + word_count(bits)] = 0
        return meaning

    def _first(self, wrong: Words) -> tuple[int, int, str]:
        """Cycle, word and port of the first wrong bit."""
        cycle = int(np.argmax(wrong.any(axis=1)))
        word = int(np.argmax(wrong[cycle] != 0))
        port = next(port for port, (first, bits) in self._outputs.items() if first <= word < first + word_count(bits))
        return cycle, word, port


def check_streams(trace: Trace, streams: Iterable[Stream], start: int) -> None:
    """Rule 1 of docs/hardware in both directions: a valid item stays as it is until it moves, or a disarm comes."""
    disarm = control(trace, "disarm") if "config_valid" in trace else np.zeros(len(trace), bool)
    for stream in streams:
        valid = trace.is_set(stream.valid)
        waits = valid & ~trace.is_set(stream.ready) & ~disarm
        changed = np.zeros(len(trace) - 1, bool)
        for port in stream.payload:
            is_input, (first, bits) = trace.ports.place(port)
            payload = (trace.inputs if is_input else trace.outputs)[:, first : first + word_count(bits)]
            differs = (payload[1:] != payload[:-1]).any(axis=1)
            if port in stream.conditional:
                differs &= trace.is_set(stream.conditional[port])[1:]
            changed |= differs
        for broken, what in (
            (waits[:-1] & ~valid[1:], "valid fell before the transfer"),
            (waits[:-1] & valid[1:] & changed, "the waiting payload changed"),
        ):
            if broken.any():
                cycle = int(np.argmax(broken)) + 1
                raise AssertionError(f"{stream.name}: {what} in cycle {start + cycle}\n{history(trace, cycle, start)}")
