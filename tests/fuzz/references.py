"""Cases of the fuzzer: traces and cycles for ``t3 validate hbm``, and cases for ``t3 validate alu``."""

import io
import json
import zipfile
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import t3sim

from tests.fuzz.case import Case

VALIDATE = ("validate", "hbm", "--traces", "t.npz", "--reference", "r.json")
TRACE = np.array([[0, 0, 0, 5, 1], [1, 3, 2, 7, 31], [0, 1, 1, 5, 2]] * 4)
NO_COUNTS: tuple[Any, ...] = (None, -1, "x", "9", 1.5, float("nan"), float("inf"), [], {}, True, [[4]], 1e400, "🦀")


@cache
def reference() -> dict[str, Any]:
    """The package's timings, and made-up cycles of one trace."""
    package = Path(t3sim.__file__).parent / "validation" / "reference" / "hbm2_reference.json"
    timings = json.loads(package.read_text())["timings_in_clock_cycles"]
    result = {"requests": len(TRACE), "cycles": 60, "cycles_with_refresh": 60, "row_hits": 5}
    return {"timings_in_clock_cycles": timings, "results": {"a": result}}


def archive(compressed: bool = False, **arrays: Any) -> bytes:
    """The bytes of an .npz file."""
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, **(arrays or {"a": TRACE}))
    return content.getvalue()


def _fill(traces: bytes, cycles: bytes, place: Path) -> None:
    (place / "t.npz").write_bytes(traces)
    (place / "r.json").write_bytes(cycles)


def _case(traces: bytes, cycles: Any, expected: str, *more: str, says: str = "") -> Case:
    text = cycles if isinstance(cycles, bytes) else json.dumps(cycles).encode()
    return Case(
        arguments=(*VALIDATE, *more), expected=expected, prepare=partial(_fill, traces, text), codes=(0, 1), says=says
    )  # type: ignore[arg-type]


def good(random: Random) -> Case:
    """Files that belong together; that the made-up cycles are off does not matter."""
    more = random.choice(((), ("--no-refresh",), ("--tolerance", random.choice(("1", "0.5", "1e-300")))))
    dtype = random.choice(("i8", "u1", "i2", ">i4", "u8"))
    return _case(archive(random.random() < 0.5, a=TRACE.astype(dtype)), reference(), "accepted", *more)


def tolerance(random: Random) -> Case:
    """A tolerance that is none."""
    wrong = random.choice(("0", "-1", "nan", "inf", "-inf", "1.001", "1e400", "x", "", "5%", "🦀", "0,03", "1e-400"))
    return _case(archive(), reference(), "refused", "--tolerance", wrong, says="tolerance")


def wrong_count(random: Random) -> Case:
    """A timing or a count that is none, or is not there."""
    content = deepcopy(reference())
    table = random.choice((content["timings_in_clock_cycles"], content["results"]["a"]))
    timings = [name for name in table if name[0] == "n"] or ["requests", "cycles_with_refresh", "row_hits"]
    name = random.choice(timings)
    table[name] = random.choice(NO_COUNTS)
    if random.random() < 0.3:
        del table[name]
    return _case(archive(), content, "refused", says=name)


def wrong_tables(random: Random) -> Case:
    """Tables that are none, or not of these traces."""
    content = deepcopy(reference())
    wrong = random.choice([*NO_COUNTS, {}])
    how = random.choice(("whole", "timings_in_clock_cycles", "results", "result", "name"))
    if how == "whole":
        content = wrong
    elif how == "result":
        content["results"]["a"] = wrong
    elif how == "name":
        content["results"][random.choice(("b", "[/b]", "🦀", "a\nb", "\x1b[31m", "", "n" * 5000))] = content["results"][
            "a"
        ]
    else:
        content[how] = wrong
    return _case(archive(), content, "refused")


def no_json(random: Random) -> Case:
    """Text that is no JSON."""
    texts = ("", " ", "{", "nonsense", "[" * 5000, '{"a": ' * 5000, "\ufeff{}", "'", "NaN", "{}{}", "9" * 5000, "\x00")
    wrong = random.choice([*(text.encode() for text in texts), b"\xff", random.randbytes(50)])
    return _case(archive(), wrong, "refused", says="r.json")


def wrong_traces(random: Random) -> Case:
    """Arrays that are no traces."""
    negative, large = TRACE.copy(), TRACE.astype("u8")
    negative[3, random.randrange(5)] = -1
    large[3, random.randrange(5)] = random.choice((1 << 24, 1 << 32, (1 << 64) - 1))
    wrong = random.choice((
        negative, large, TRACE.astype(float), TRACE[:0], TRACE[:, :4], TRACE[0], np.array(4), TRACE[None],
        TRACE.astype(bool),
        TRACE.astype(complex), TRACE.astype("U"), np.array([("x", 4)], "U1,i4"), TRACE.astype("M8[s]"),
        np.array([[object()]]),
    ))  # fmt: skip
    return _case(archive(a=wrong), reference(), "refused", says="t.npz")


def no_archive(random: Random) -> Case:
    """Bytes that are no .npz file, or a good one with some bytes changed."""
    single, other = io.BytesIO(), io.BytesIO()
    np.save(single, TRACE)
    with zipfile.ZipFile(other, "w") as file:
        file.writestr(
            random.choice(("a", "a.npy", "[/b].npy", "../a.npy")), random.choice((b"", b"x", b"\x93NUMPY\x01\x00"))
        )
    wrong = (
        b"",
        b"PK",
        b"PK\x03\x04",
        b"\x93NUMPY",
        random.randbytes(99),
        single.getvalue(),
        other.getvalue(),
        b"\x80\x04.",
    )
    if random.random() < 0.4:
        return _case(random.choice(wrong), reference(), "refused", says="t.npz")
    content = bytearray(archive(random.random() < 0.5))
    for _ in range(random.randint(1, 3)):
        content[random.randrange(len(content))] = random.randrange(256)
    return _case(bytes(content[: random.choice((None, random.randrange(len(content))))]), reference(), "either")


def alu_text(random: Random) -> Case:
    """Cases for an ALU that does not exist, whatever the cases are."""
    options = random.choice(
        (("--dtype", "fp64"), ("--op", "mul"), ("--dtype", "🦀"), ("--op", "\x1b[31m"), ("--op", ""))
    )
    whole = {"--dtype": "fp16", "--op": "add"} | dict([options])
    text = random.choice(("", "0000 0000 0000 00\n", "nonsense", "\x00", "🦀\n" * 99))
    arguments = ("validate", "alu", *(word for item in whole.items() for word in item))
    return Case(arguments=arguments, expected="refused", stdin=text, says=options[0])


REFERENCES = {
    good: 2, tolerance: 1, wrong_count: 4, wrong_tables: 2, no_json: 1, wrong_traces: 2, no_archive: 5, alu_text: 1,
}  # fmt: skip
"""Generators, and how often each is taken."""
