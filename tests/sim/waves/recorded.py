"""Waves of a toy run, recorded once for all tests of a process; and a VCD read back."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import opent3
from t3sim.run.request import RunRequest
from t3sim.waves.hierarchy import waveform
from t3sim.waves.record import Waves, Window, record
from t3sim.waves.selection import part_instances
from t3sim.waves.vcd import write_vcd
from vcd.reader import TokenKind, tokenize

WHOLE = Window(first=0, last=100_000)
ALL = "slice,matcher,leaf,root,tracker,trigger,monitor"


def request(hardware: str = "golden", **options) -> RunRequest:
    workload = opent3.custom_workload(m=256, n=64, k=64, tp=4)
    return opent3.requests_of(workload, ("t3-mca",), machine="toy", hardware=hardware, **options)[0]  # type: ignore[arg-type]


@cache
def waves(
    hardware: str = "golden", window: Window = WHOLE, parts: str = ALL, gpu: int = 0, threads: int = 2,
    internals: bool = False,
) -> Waves:  # fmt: skip
    of = request(hardware, threads=threads)
    instances = part_instances(parts, of.machine.hardware.config())
    return record(of, gpu, instances, window, lambda progress: None, internals=internals)


class VcdFile:
    """A VCD read back: ``changes`` of each signal, by its path below the unit, as (time, value)."""

    def __init__(self, of: Waves) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "waves.vcd"
            write_vcd(waveform(of), path)
            self.read(path)

    def read(self, path: Path) -> None:
        self.changes: dict[str, list[tuple[int, str | int]]] = {}
        self.times: list[int] = []
        names: dict[str, str] = {}
        scopes: list[str] = []
        with path.open("rb") as file:
            for token in tokenize(file):
                if token.kind is TokenKind.SCOPE:
                    scopes.append(token.scope.ident)
                elif token.kind is TokenKind.UPSCOPE:
                    scopes.pop()
                elif token.kind is TokenKind.VAR:
                    names[token.var.id_code] = ".".join([*scopes[2:], token.var.reference])
                    self.changes[names[token.var.id_code]] = []
                elif token.kind is TokenKind.CHANGE_TIME:
                    self.times.append(token.time_change)
                elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                    change = token.scalar_change if token.kind is TokenKind.CHANGE_SCALAR else token.vector_change
                    value = change.value if not str(change.value).isdecimal() else int(change.value)
                    self.changes[names[change.id_code]].append((self.times[-1], value))

    def clocks(self, *names: str) -> Iterator[tuple[int, tuple[str | int, ...]]]:
        """The values of signals in every clock: the time of its edge, and one of each."""
        at: list[dict[int, str | int]] = [dict(self.changes[name]) for name in names]
        values: list[str | int] = ["x"] * len(names)
        for time, level in self.changes["clk"]:
            values = [now.get(time, value) for now, value in zip(at, values, strict=True)]
            if level == 1:
                yield time, tuple(values)
