"""``t3 waves``: waveforms of parts of one GPU's T3 unit, in a window of a run."""

import math
from dataclasses import replace
from typing import Any

import click
import opent3
from opent3 import POLICIES

from t3sim.common.output import output_folder
from t3sim.run.ideal import COMPUTED
from t3sim.run.request import Backend, Policy, RunRequest

from ..errors import OUT_FOLDER, Mismatch, is_given, refuse_given
from ..reproduce import say_where
from ..start.completion import values
from .options import chosen, simulation_options
from .results import watch

FORMATS = ("vcd", "fst")
AROUND_CLOCKS = 500
"""Memory clocks that ``--around`` shows before the trigger, and behind it."""


@click.command()
@simulation_options
@click.option("--out", "-o", type=OUT_FOLDER, required=True, help="Folder for the files.")
@click.option("--policy", default="t3-mca", shell_complete=values(POLICIES), help=f"Policy: {', '.join(POLICIES)}.")
@click.option("--gpu", type=int, default=0, help="The GPU whose unit is shown.")
@click.option(
    "--parts",
    default="tracker,trigger",
    help="Parts of the unit, separated by commas; slice is all slices, slice.3 one.",
)
@click.option("--from-ns", type=float, help="Where the window begins, in ns since the launch of the GEMM.")
@click.option("--to-ns", type=float, help="Where the window ends; the run ends there, too.")
@click.option(
    "--around",
    type=int,
    metavar="TRIGGER",
    default=1,
    help=f"Instead of --from-ns and --to-ns: {AROUND_CLOCKS} clocks before and after this trigger of the GPU.",
)
@click.option(
    "--internals/--no-internals", default=True, help="With RTL: also registers, memories and wires in the parts."
)
@click.option("--golden/--no-golden", default=True, help="With RTL: also the ports of the golden model, compared.")
@click.option("--format", "waveform", type=click.Choice(FORMATS), default="vcd", help="VCD is text, FST compressed.")
def waves(
    policy: Policy, gpu: int, parts: str, from_ns: float | None, to_ns: float | None, around: int, internals: bool,
    golden: bool, waveform: str, **options: Any,
) -> None:  # fmt: skip
    """Write waveforms of parts of one GPU's T3 unit in a run.

    They show the ports of the parts and the signals inside them, clock by clock. The simulation is that of t3 run, up
    to the end of the window. The folder gets rtl.vcd (or rtl.fst), rtl.gtkw for GTKWave and rtl.sucl for Surfer, which
    group the signals by stream, and the same three files of the golden model. Exit code 1 if RTL and golden model
    differ at a port.

    \b
    t3 waves --machine toy --m 256 --n 64 --k 64 --tp 4 --out out/waves
    gtkwave out/waves/rtl.gtkw
    """
    from t3sim.waves.files import check_format, difference_text, summary, write_waves
    from t3sim.waves.record import Window, check_trigger, record, trigger_cycle
    from t3sim.waves.selection import part_instances

    work, passed, _ = chosen(options)
    (request,) = opent3.requests_of(work, (policy,), **passed)
    _check(request, gpu)
    check_format(waveform)
    instances = part_instances(parts, request.machine.hardware.config())
    bounds = _bounds(from_ns, to_ns, around, request.machine.hbm.clock_mhz)
    recordings = [(replace(request, hardware=name), inside) for name, inside in _recordings(request, golden, internals)]
    if bounds is None:
        check_trigger(request, gpu, around)
    else:
        _check_length(bounds, inside=any(inside for _, inside in recordings))
    with output_folder(options["out"]) as folder:
        if bounds is None:
            with watch(f"trigger {around} (golden)") as show:
                cycle = trigger_cycle(replace(request, hardware="golden"), gpu, around, show)
            bounds = max(0, cycle - AROUND_CLOCKS), cycle + AROUND_CLOCKS
        recorded = []
        window = Window(first=bounds[0], last=bounds[1])
        for one, inside in recordings:
            with watch(f"{policy} ({one.hardware})") as show:
                recorded.append(record(one, gpu, instances, window, show, internals=inside))
            write_waves(recorded[-1], folder, waveform)
    click.echo(summary(recorded))
    difference = difference_text(*recorded) if len(recorded) == 2 else None
    if len(recorded) == 2 and difference is None:
        click.echo("the ports of RTL and golden model are identical in every clock (idle and wake_at may differ)")
    say_where(options["out"])
    if difference is not None:
        raise Mismatch(difference)


def _recordings(request: RunRequest, golden: bool, internals: bool) -> list[tuple[Backend, bool]]:
    """What is recorded, and whether with internal signals, which only the RTL has."""
    if request.hardware == "golden":
        refuse_given(("golden", "internals"), "the golden model alone has nothing beside it, and no internal signals")
        return [("golden", False)]
    return [("rtl", internals), ("golden", False)] if golden else [("rtl", internals)]


def _check(request: RunRequest, gpu: int) -> None:
    """Refuses (ValueError) what has no waves."""
    from t3sim.run.plan import RunPlan  # here, because it takes seconds to import, and a cache folder

    if request.policy in COMPUTED:
        raise ValueError(f"--policy must be one that is simulated, and {request.policy} is computed from others")
    simulated = RunPlan(request).simulated
    if not 0 <= gpu < simulated:
        raise ValueError(f"--gpu must be one that is simulated, 0 to {simulated - 1}, not {gpu}")


def _bounds(from_ns: float | None, to_ns: float | None, around: int, clock_mhz: float) -> tuple[int, int] | None:
    """First clock of the window and the one behind its last; None if it is around a trigger."""
    if from_ns is None and to_ns is None:
        if around < 1:
            raise ValueError(f"--around must be the number of a trigger, from 1 on, not {around}")
        return None
    if is_given("around"):
        raise ValueError("give either --around, or --from-ns and --to-ns, not both")
    if from_ns is None or to_ns is None:
        raise ValueError(f"--from-ns and --to-ns go together: give --{'from' if from_ns is None else 'to'}-ns, too")
    if not (math.isfinite(to_ns) and 0 <= from_ns < to_ns):
        raise ValueError(f"--from-ns must be at least 0 and less than --to-ns, not {from_ns:g} and {to_ns:g}")
    first, last = (math.ceil(edge * clock_mhz / 1000) for edge in (from_ns, to_ns))
    return first, last


def _check_length(bounds: tuple[int, int], *, inside: bool) -> None:
    """Refuses (ValueError) a window of no clocks, and one that is too long; ``inside``: with internal signals."""
    from t3sim.waves.record import MOST_CLOCKS, MOST_CLOCKS_INSIDE

    clocks, most = bounds[1] - bounds[0], MOST_CLOCKS_INSIDE if inside else MOST_CLOCKS
    if not 1 <= clocks <= most:
        more = f" (of {MOST_CLOCKS} with --no-internals)" if inside else ""
        raise ValueError(f"the window must have 1 to {most} memory clocks{more}, not {clocks}: change --to-ns")
