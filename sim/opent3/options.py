"""How one sublayer is simulated, and the checked request that is made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

from t3sim.inputs import arguments
from t3sim.inputs.machine.files import Machine, load_machine
from t3sim.inputs.workload import Workload, check_name
from t3sim.run.request import POLICIES, Backend, OnProgress, Policy, RunRequest


class Options(TypedDict, total=False):
    """How to simulate; all have defaults.

    ``machine``: a preset's name, a TOML file, or a Machine ("paper"). ``settings``: values of the former two that are
    changed, such as ``{"link.gb_s": 300}``. ``hardware``: the T3 hardware as compiled Verilog ("rtl", the default) or
    as its cycle-exact model ("golden"). ``mirror``: simulate one GPU and reflect its traffic (False). ``threads``: all
    usable cores; results do not depend on it. ``seed``: of data and samples (0). ``data_lines``: lines of 32 bytes
    that carry data (all, or a sample if the output is large). ``events``: keep what a trace shows (False).
    ``contention``: observe what the streams wait for at the memory (True; the record has None there without).
    """

    machine: str | Path | Machine
    settings: Mapping[str, object]
    hardware: Backend
    mirror: bool
    threads: int
    seed: int
    data_lines: int | None
    events: bool
    contention: bool


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def request_of(
    workload: Workload,
    policy: Policy,
    *,
    machine: str | Path | Machine = "paper",
    settings: Mapping[str, object] | None = None,
    threads: int | None = None,
    hardware: Backend = "rtl",
    mirror: bool = False,
    seed: int = 0,
    data_lines: int | None = None,
    events: bool = False,
    contention: bool = True,
) -> RunRequest:
    """What is to be simulated, checked (see :class:`Options`). Raises ValueError if a choice is unknown or things do
    not fit together."""
    if not isinstance(machine, Machine):
        machine = load_machine(machine, arguments.settings("settings", settings))
    elif settings:
        raise ValueError("settings change a preset or a machine file, not a Machine: load it with them")
    return RunRequest(
        workload=workload,
        machine=machine,
        policy=policy,
        hardware=hardware,
        mirror=mirror,
        threads=usable_cores() if threads is None else threads,
        seed=seed,
        data_lines=data_lines,
        events=events,
        contention=contention,
    )


def requests_of(workload: Workload, policies: Sequence[Policy], **options: Unpack[Options]) -> list[RunRequest]:
    """A request for each of ``policies``. Raises ValueError as :func:`request_of`, and if a policy comes twice."""
    policies = arguments.items("policies", policies, str, "names of policies")
    if not policies or len(set(policies)) != len(policies):
        raise ValueError(f"--policies must name each policy once, not {','.join(policies)!r}")
    for policy in policies:
        check_name("policies" if len(policies) > 1 else "policy", policy, POLICIES)
    return [request_of(workload, policy, **options) for policy in policies]


def preview_options(preview: Path | None, out: Path | None, options: Options) -> Options | None:
    """The options of the preview; None without one. Raises ValueError for what has none, before anything is opened."""
    if preview is None:
        return None
    if options.get("mirror"):
        raise ValueError("--preview simulates one GPU first, and with --mirror there is no more: leave one of them out")
    if out is not None:
        places = [Path(os.path.realpath(folder)) for folder in (preview, out)]
        if any(place.is_relative_to(other) for place, other in (places, reversed(places))):
            raise ValueError(f"--preview must be neither in the folder of --out nor around it, and {preview} is")
    return {**options, "mirror": True, "data_lines": None, "events": False}


def is_compiled() -> bool:
    """Whether the cache folder has the simulator's compiled functions; else a first run compiles for minutes."""
    from t3sim.engine.kernels import entries_kept  # here, because it loads Numba

    return entries_kept()


def silent(label: str) -> AbstractContextManager[OnProgress]:
    """Shows no progress."""
    return nullcontext(lambda progress: None)
