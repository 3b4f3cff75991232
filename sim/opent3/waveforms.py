"""Waveforms of parts of one GPU's T3 unit, in a window of a run."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Literal, Unpack

from t3sim.common.output import output_folder
from t3sim.inputs import arguments
from t3sim.inputs.workload import Workload
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import Watch
from t3sim.run.request import Backend, Policy, RunRequest

from .options import Options, requests_of, silent

if TYPE_CHECKING:  # it takes seconds to import
    from t3sim.waves.record import Window

Format = Literal["vcd", "fst"]
AROUND_CLOCKS = 500
"""Memory clocks that are shown before a trigger, and behind it."""


@dataclass(frozen=True, kw_only=True)
class Waveforms:
    """What was written: ``files``, ``summary`` in one line, and where RTL and golden model differ first.

    ``difference`` is None if all of their ports are the same in every clock. ``compared``: both were recorded.
    """

    files: tuple[Path, ...]
    summary: str
    compared: bool
    difference: str | None


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """What is looked at: a trigger's surroundings, or the clocks from the first to the one behind the last."""

    gpu: int
    around: int | None
    clocks: tuple[int, int] | None


def waves(
    workload: Workload,
    out: str | Path,
    policy: Policy = "t3-mca",
    *,
    gpu: int = 0,
    parts: str = "tracker,trigger",
    from_ns: float | None = None,
    to_ns: float | None = None,
    around: int | None = None,
    internals: bool | None = None,
    golden: bool | None = None,
    form: Format = "vcd",
    watch: Watch | None = None,
    **options: Unpack[Options],
) -> Waveforms:
    """Writes waveforms of ``parts`` of one GPU's T3 unit into the folder ``out``, and what viewers show of them.

    ``parts``: names by commas, a part for all of its kind, ``slice.3`` for one. The window is from ``from_ns`` to
    ``to_ns`` since the launch of the GEMM, or 500 clocks before and behind the trigger number ``around`` of the GPU
    (the first, by default); the run ends where the window does. ``internals``: with registers, memories and wires
    inside the parts; ``golden``: also the ports of the golden model, compared; both by default with the hardware "rtl",
    and neither with "golden". Raises ValueError for what has no waves, and what a simulation raises.
    """
    from t3sim.waves.files import check_format, difference_text, summary, write_waves
    from t3sim.waves.record import Waves, record
    from t3sim.waves.selection import part_instances

    (request,) = requests_of(workload, (policy,), **options)
    _check(request, gpu)
    check_format(form)
    for name, value in (("internals", internals), ("golden", golden)):
        arguments.instance(name, value, (bool, NoneType), "True, False or None")
    arguments.instance("parts", parts, str, "names of parts, by commas")
    instances = part_instances(parts, request.machine.hardware.config())
    shown = _Shown(gpu=gpu, around=around, clocks=_clocks(from_ns, to_ns, around, request.machine.hbm.clock_mhz))
    recordings = [(replace(request, hardware=name), inside) for name, inside in _recordings(request, golden, internals)]
    _check_window(request, shown, inside=any(inside for _, inside in recordings))
    arguments.instance("out", out, (str, os.PathLike), "a path")
    show, where, recorded = watch or silent, Path(out), list[Waves]()
    with output_folder(where) as folder:
        window = _window(request, shown, show)
        for one, inside in recordings:
            with show(f"{policy} ({one.hardware})") as tell:
                recorded.append(record(one, gpu, instances, window, tell, internals=inside))
            write_waves(recorded[-1], folder, form)
        names = sorted(path.name for path in folder.iterdir())
    compared = len(recorded) == 2
    return Waveforms(
        files=tuple(where / name for name in names),
        summary=summary(recorded),
        compared=compared,
        difference=difference_text(*recorded) if compared else None,
    )


def _recordings(request: RunRequest, golden: bool | None, internals: bool | None) -> list[tuple[Backend, bool]]:
    """What is recorded, and whether with internal signals, which only the RTL has."""
    if request.hardware == "golden":
        given = {"internals": internals, "golden": golden}
        options = [f"--{'' if value else 'no-'}{name}" for name, value in given.items() if value is not None]
        if options:
            raise ValueError(
                "--hardware golden records the golden model alone, which has no internal signals: leave out "
                + ", ".join(options)
            )
        return [("golden", False)]
    rtl: tuple[Backend, bool] = ("rtl", internals is not False)
    return [rtl] if golden is False else [rtl, ("golden", False)]


def _check(request: RunRequest, gpu: int) -> None:
    """Refuses (ValueError) what has no waves."""
    from t3sim.run.plan import RunPlan  # here, because it takes seconds to import, and a cache folder

    if request.policy in COMPUTED:
        raise ValueError(f"--policy must be one that is simulated, and {request.policy} is computed from others")
    simulated = RunPlan(request).simulated
    if not 0 <= arguments.integer("--gpu", gpu) < simulated:
        raise ValueError(f"--gpu must be one that is simulated, 0 to {simulated - 1}, not {gpu}")


def _clocks(from_ns: float | None, to_ns: float | None, around: int | None, clock_mhz: float) -> tuple[int, int] | None:
    """First clock of the window and the one behind its last; None if it is around a trigger."""
    for name, edge in (("--from-ns", from_ns), ("--to-ns", to_ns)):
        arguments.instance(name, edge, (Real, NoneType), "a number of ns")
    if from_ns is None and to_ns is None:
        if around is not None and arguments.integer("--around", around) < 1:
            raise ValueError(f"--around must be the number of a trigger, from 1 on, not {around}")
        return None
    if around is not None:
        raise ValueError("give either --around, or --from-ns and --to-ns, not both")
    if from_ns is None or to_ns is None:
        raise ValueError(f"--from-ns and --to-ns go together: give --{'from' if from_ns is None else 'to'}-ns, too")
    if not (math.isfinite(to_ns) and 0 <= from_ns < to_ns):
        raise ValueError(f"--from-ns must be at least 0 and less than --to-ns, not {from_ns:g} and {to_ns:g}")
    first, last = (math.ceil(edge * clock_mhz / 1000) for edge in (from_ns, to_ns))
    return first, last


def _check_window(request: RunRequest, shown: _Shown, *, inside: bool) -> None:
    """Refuses (ValueError) a trigger that there is not, a window of no clocks, and one that is too long; ``inside``:
    with internal signals."""
    from t3sim.waves.record import MOST_CLOCKS, MOST_CLOCKS_INSIDE, check_trigger

    if shown.clocks is None:
        check_trigger(request, shown.gpu, shown.around or 1)
        return
    clocks, most = shown.clocks[1] - shown.clocks[0], MOST_CLOCKS_INSIDE if inside else MOST_CLOCKS
    if not 1 <= clocks <= most:
        more = f" (of {MOST_CLOCKS} with --no-internals)" if inside else ""
        raise ValueError(f"the window must have 1 to {most} memory clocks{more}, not {clocks}: change --to-ns")


def _window(request: RunRequest, shown: _Shown, watch: Watch) -> Window:
    """The window; around a trigger, a run on the golden model says when that is."""
    from t3sim.waves.record import Window, trigger_cycle

    if shown.clocks is not None:
        return Window(first=shown.clocks[0], last=shown.clocks[1])
    number = shown.around or 1
    with watch(f"trigger {number} (golden)") as show:
        cycle = trigger_cycle(replace(request, hardware="golden"), shown.gpu, number, show)
    return Window(first=max(0, cycle - AROUND_CLOCKS), last=cycle + AROUND_CLOCKS)
