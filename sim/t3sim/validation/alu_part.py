"""The NMC ALU as compiled RTL, fed with whole lines of cases, and what comes out compared with what should."""

from dataclasses import dataclass

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.layouts import LINE_BYTES, Dtype, Op
from t3hdl.interface.signatures import alu_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import njit
from t3sim.hardware.abi import PartType, address_of
from t3sim.run.request import SimulationError

from .alu_cases import Cases, lane_type

_IN, _OUT = ports_of(alu_signature(T3Config()))
_LINE_WORDS = LINE_BYTES // 8
_LONGEST = 16
"""Cycles from the last line until every ALU is empty, or more: 8 stages and 8 beats."""


@dataclass(frozen=True)
class Compared:
    """One block of cases: the numbers of those that came out wrong, and what came out for them."""

    wrong: np.ndarray
    bits: np.ndarray
    flags: np.ndarray
    alone: int
    """Cases that went through the ALU a second time, alone in their line."""


class AluBench:
    """One instance of the ALU, which takes a line every ``beats`` cycles; for one thread."""

    def __init__(self, part: PartType, op: Op, dtype: Dtype, beats: int) -> None:
        self._part, self._op, self._dtype, self._beats = part, op, dtype, beats
        self._kind = lane_type(dtype)
        self.lanes = LINE_BYTES // self._kind.itemsize
        """Cases in a line."""
        self._handle = part.new()

    def compare(self, cases: Cases, every: int, first: int = 0) -> Compared:
        """Puts all cases through the ALU, whole lines at a time, and one in ``every`` again, alone in its line.

        A full line tells the results, and its lanes' flags together; a case that is alone tells its own flags. Which
        cases are alone moves on by a lane from line to line; the first line begins with lane ``first``. Of a line whose
        flags are wrong, though no case is wrong alone, the first case counts as wrong, with the line's flags.
        """
        padding = -len(cases) % self.lanes  # the last line's free lanes repeat the last case
        a, b, bits, flags = (np.pad(x, (0, padding), "edge") for x in (cases.a, cases.b, cases.bits, cases.flags))
        results, line_flags = self._run(a, b, np.full(len(a) // self.lanes, (1 << LINE_BYTES) - 1))
        wrong, raised = results != bits, flags.copy()

        chosen = self._chosen(len(a), every, first)
        alone_bits, alone_flags = self._alone(a, b, chosen)
        off = (alone_bits != bits[chosen]) | (alone_flags != flags[chosen])
        wrong[chosen[off]] = True
        results[chosen[off]], raised[chosen[off]] = alone_bits[off], alone_flags[off]

        expected_flags = np.bitwise_or.reduce(flags.reshape(-1, self.lanes), axis=1)
        unexplained = (line_flags != expected_flags) & ~wrong.reshape(-1, self.lanes).any(axis=1)
        heads = np.flatnonzero(unexplained) * self.lanes
        wrong[heads], raised[heads] = True, line_flags[unexplained]

        places = np.flatnonzero(wrong)
        numbers, firsts = np.unique(np.minimum(places, len(cases) - 1), return_index=True)
        places = places[firsts]
        return Compared(numbers, results[places], raised[places], int(np.count_nonzero(chosen < len(cases))))

    def _chosen(self, count: int, every: int, first: int) -> np.ndarray:
        """Numbers of the cases that are to be alone."""
        numbers = np.arange(0, count, every)
        return np.minimum(numbers + (numbers // every + first) % min(every, self.lanes), count - 1)

    def _alone(self, a: np.ndarray, b: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Results and flags of the cases ``chosen``, each in its lane of its line, with all other lanes masked off.

        A result is wrong in all bits if another lane of the line does not keep its old bytes.
        """
        lines, lanes = chosen // self.lanes, chosen % self.lanes
        old, new = (np.ascontiguousarray(side.reshape(-1, self.lanes)[lines]) for side in (a, b))
        size = self._kind.itemsize
        masks = ((1 << size) - 1) << (lanes * size)
        results, flags = self._run(old.ravel(), new.ravel(), masks)
        table, numbers = results.reshape(-1, self.lanes), np.arange(len(chosen))
        bits = table[numbers, lanes].copy()
        table[numbers, lanes] = old[numbers, lanes]
        spoilt = (table != old).any(axis=1)
        return np.where(spoilt, ~bits, bits), flags

    def _run(self, a: np.ndarray, b: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Result lanes, and the flags of each line. Raises SimulationError if results stay away."""
        old, new = (np.ascontiguousarray(side).view(np.uint64).reshape(-1, _LINE_WORDS) for side in (a, b))
        results, flags = np.empty_like(old), np.empty(len(masks), np.uint8)
        count = _compute(
            self._part.reset, self._part.step, self._handle, int(self._op), int(self._dtype), self._beats,
            old, new, masks.astype(np.uint64), results, flags,
        )  # fmt: skip
        if count != len(masks):
            raise SimulationError(f"the ALU gave {count} results for {len(masks)} lines")
        return results.ravel().view(self._kind), flags


@njit(cache=True, nogil=True)
def _compute(reset, step, state, op, dtype, beats, old, new, masks, results, flags):
    """Sends a line every ``beats`` cycles and collects results; returns how many valid ones there were."""
    inputs, outputs = np.zeros(_IN.size, np.uint64), np.zeros(_OUT.size, np.uint64)
    reset(state, address_of(inputs), address_of(outputs))
    inputs[_IN.op], inputs[_IN.dtype] = op, dtype
    done = 0
    for cycle in range(len(masks) * beats + _LONGEST):
        if outputs[_OUT.result_valid]:
            if done < len(masks):
                for word in range(_LINE_WORDS):
                    results[done, word] = outputs[_OUT.result + word]
                flags[done] = outputs[_OUT.flags]
            done += 1
        line = cycle // beats
        inputs[_IN.valid] = 1 if cycle == line * beats and line < len(masks) else 0
        if inputs[_IN.valid]:
            inputs[_IN.mask] = masks[line]
            for word in range(_LINE_WORDS):
                inputs[_IN.old + word], inputs[_IN.data + word] = old[line, word], new[line, word]
        step(state, address_of(inputs), address_of(outputs))
    return done
