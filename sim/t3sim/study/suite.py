"""Which simulations the paper's evaluation needs, by table."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from t3sim.common.user_input import shortened
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import Machine, load_machine
from t3sim.inputs.transformer.sublayers import sublayer_runs, sublayer_workload
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.inputs.workload import CUSTOM, INNER_MULTIPLE, Workload, custom_workload, model_workload
from t3sim.run.request import Backend, Policy

from .experiment import Experiment

PUBLISHED_RULE: Mapping[str, Any] = MappingProxyType({"arbiter.mca": "paper"})
"""What is held against a published number arbitrates by the paper's rule, whatever the machine's own."""

Variant = Literal["base", "fit", "cus", "backlog"]
SETTINGS: Mapping[Variant, dict[str, Any]] = MappingProxyType(
    {
        "base": {},
        "fit": {"hardware.preset": "paper-fit"},
        "backlog": {"arbiter.mca": "backlog"},
    }
)
"""Machines of the report: the one that is asked for, that with a tracker that never overflows, and that with this
project's rule of arbitration. ``cus``, with twice the CUs, depends on the one that is asked for."""
FULL_VARIANTS: tuple[Variant, ...] = ("base", "backlog")
"""Machines on which FULL_RING is simulated with all GPUs."""

BASELINE: Policy = "sequential"
"""The policy that speedups are over."""
OVERLAPPED: tuple[Policy, ...] = ("t3", "t3-mca")
OVERLAP: tuple[Policy, ...] = (BASELINE, *OVERLAPPED)
FULL_RING: tuple[Policy, ...] = (*OVERLAP, "sequential-nmc")
"""Policies that are simulated with all GPUs of the ring at FULL_RING_TP on FULL_VARIANTS. All that an ideal is
computed from is among them: a reduce-scatter takes longer on a ring (T-NLG OP at TP 8: 509 us, mirrored 471 us)."""
FULL_RING_TP = 8


@dataclass(frozen=True, order=True, kw_only=True)
class Point:
    """One sublayer of one model at one degree of tensor parallelism; or a GEMM by its sizes (:func:`custom_point`)."""

    model: str
    sublayer: str
    tp: int

    @property
    def title(self) -> str:
        """For people, for example ``t-nlg fc2 TP 8``."""
        return f"{self.model} {self.sublayer} TP {self.tp}"


def custom_point(m: int, n: int, k: int, tp: int) -> Point:
    """Any GEMM: M x N output, whole inner dimension K split over ``tp`` GPUs."""
    return Point(model=CUSTOM, sublayer=f"{m}x{n}x{k}", tp=tp)


def custom_points(m: int, n: int, k: int, degrees: Iterable[str | int]) -> tuple[Point, ...]:
    """The same GEMM at several degrees. Raises ValueError for sizes or degrees that cannot be, or for no degree."""
    found = tuple(custom_point(m, n, k, _degree(text)) for text in _listed(degrees))
    for point in found:
        custom_workload(m, n, k, point.tp)
    if not found:
        raise ValueError("choose at least one degree")
    return found


def points(models: Iterable[str], degrees: Iterable[int]) -> tuple[Point, ...]:
    """All four sublayers of every model at every degree, in the order of the paper's figures."""
    return tuple(
        Point(model=model, sublayer=sublayer, tp=tp)
        for model in models
        for tp in degrees
        for sublayer in INNER_MULTIPLE
    )


TP_8_16 = points(("mega-gpt-2", "t-nlg"), (8, 16))
TP_32 = points(("gpt-3", "palm", "mt-nlg"), (32,))
TP_64 = points(("1t", "10t"), (64,))
FIGURE_17 = Point(model="t-nlg", sublayer="fc2", tp=8)
"""The sublayer whose DRAM traffic over time the paper shows."""


def sweep_points(models: Iterable[str], degrees: Iterable[str], sublayers: Iterable[str]) -> tuple[Point, ...]:
    """The points that a command line names. Raises ValueError for an unknown name, or a degree that is no number."""
    models = arguments.items("models", models, str, "names of models")
    sublayers = arguments.items("sublayers", sublayers, str, "names of sublayers")
    found = []
    for model, text, sublayer in itertools.product(models, _listed(degrees), sublayers):
        model_workload(model, sublayer, _degree(text))
        found.append(Point(model=model, sublayer=sublayer, tp=_degree(text)))
    if not found:
        raise ValueError("choose at least one model, one sublayer and one degree")
    return tuple(found)


def own_points(
    model: SizedModel, degrees: Iterable[str | int], sublayers: Sequence[str] | None = None
) -> tuple[Point, ...]:
    """The points of the user's model; without ``sublayers``, all that it has. Errors as in :func:`sweep_points`."""
    arguments.instance("model", model, SizedModel, "a model, as of own_model")
    if sublayers is not None:
        sublayers = arguments.items("sublayers", sublayers, str, "names of sublayers")
    found = [
        Point(model=model.name, sublayer=sublayer_workload(model, sublayer, tp).sublayer, tp=tp)
        for tp in map(_degree, _listed(degrees))
        for sublayer in (sublayer_runs(model, tp) if sublayers is None else sublayers)
    ]
    if not found:
        raise ValueError("choose at least one sublayer and one degree")
    return tuple(found)


def _listed(degrees: Iterable[str | int]) -> tuple[str | int, ...]:
    return arguments.items("degrees", degrees, (str, int), "numbers of GPUs")


def _degree(text: str | int) -> int:
    if not str(text).isdecimal():
        raise ValueError(f"--tp must be numbers of GPUs separated by commas, not {text!r}")
    return int(text)


def _sizes(sublayer: str) -> tuple[int, int, int]:
    """M, N and K of a GEMM that is named by them, as :func:`custom_point` does."""
    found = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", sublayer)
    if found is None:
        raise ValueError(
            f"the sublayer of model {CUSTOM} must be M, N and K in elements, as 512x256x1024, not "
            f"{shortened(sublayer)}: make the point with custom_point(m, n, k, tp)"
        )
    m, n, k = map(int, found.groups())
    return m, n, k


@dataclass(frozen=True, kw_only=True)
class Need:
    """Simulations of ``policies`` at every point; ``mirror``: of one GPU also where all of the ring is the rule."""

    points: tuple[Point, ...]
    policies: tuple[Policy, ...]
    machine: Variant = "base"
    mirror: bool = False


_OWN_RULE = Need(points=TP_8_16, policies=("t3-mca",), machine="backlog")
NEEDS: Mapping[str, tuple[Need, ...]] = MappingProxyType(
    {
        "sublayers": (Need(points=TP_8_16, policies=FULL_RING), _OWN_RULE),
        "mca": (Need(points=TP_8_16, policies=OVERLAP), _OWN_RULE),
        "traffic": (Need(points=TP_8_16, policies=OVERLAP), _OWN_RULE),
        "timeline": (Need(points=(FIGURE_17,), policies=OVERLAP),),
        "nmc": (Need(points=TP_8_16, policies=("sequential", "sequential-nmc"), mirror=True),),
        "baseline": (Need(points=TP_8_16, policies=("sequential", "sequential-pipelined", "t3-mca"), mirror=True),),
        "mirror": (
            Need(points=TP_8_16, policies=("sequential", "t3-mca"), mirror=True),
            Need(points=TP_8_16, policies=("sequential", "t3-mca")),
        ),
        "tracker": (
            Need(points=TP_8_16, policies=("sequential", "t3-mca"), mirror=True),
            Need(points=TP_8_16, policies=("t3-mca",), machine="fit"),
        ),
        "tp32": (
            Need(points=TP_32, policies=OVERLAP),
            Need(points=TP_32, policies=("t3-mca",), machine="backlog"),
        ),
        "tp64": (Need(points=TP_64, policies=OVERLAP),),
        "cus": (
            Need(points=TP_8_16, policies=OVERLAP, machine="cus"),
            Need(points=TP_8_16, policies=OVERLAP),
        ),
        "end-to-end": (
            Need(points=TP_8_16, policies=OVERLAP),
            Need(points=TP_32 + TP_64, policies=OVERLAP),
            _OWN_RULE,
        ),
    }
)
"""Table -> what must be simulated for it. Tables share runs."""
TABLES = tuple(NEEDS)
QUICK_TABLES = tuple(name for name in TABLES if name not in ("mirror", "tp32", "tp64"))
"""Tables of a quick look: TP 8 and 16 only, one GPU of every ring."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The evaluation on one machine. ``hardware`` is what the T3 policies run on; ``quick`` mirrors everything;
    ``own``: the user's model, whose sublayers the points name instead of a model of the paper's."""

    machine: str = "paper"
    settings: Mapping[str, Any] = field(default_factory=dict)
    hardware: Backend = "rtl"
    quick: bool = False
    seed: int = 0
    own: SizedModel | None = None

    @cached_property
    def _machines(self) -> dict[Variant, Machine]:
        return {}

    def machine_of(self, variant: Variant) -> Machine:
        """A machine of the report. Raises ValueError if its values are not legal."""
        if variant not in self._machines:
            changes = self._twice_the_cus() if variant == "cus" else SETTINGS[variant]
            self._machines[variant] = load_machine(self.machine, {**self.settings, **changes})
        return self._machines[variant]

    def _twice_the_cus(self) -> dict[str, Any]:
        base = self.machine_of("base")
        return {"gpu.cus": 2 * base.gpu.cus, "kernel.cus": 2 * base.kernel.cus}

    def workload(self, point: Point) -> Workload:
        """The GEMM at ``point``. Raises ValueError if there is no such one."""
        if point.model == CUSTOM:
            return custom_workload(*_sizes(point.sublayer), point.tp)
        if self.own is None:
            return model_workload(point.model, point.sublayer, point.tp)
        return sublayer_workload(self.own, point.sublayer, point.tp)

    def experiment(self, point: Point, policy: Policy, variant: Variant = "base", mirror: bool = False) -> Experiment:
        """The simulation of ``policy`` at ``point``; raises ValueError for a machine that cannot hold it."""
        full = (
            point.tp == FULL_RING_TP and variant in FULL_VARIANTS and policy in FULL_RING and not (mirror or self.quick)
        )
        return Experiment(
            workload=self.workload(point),
            machine=self.machine_of(variant),
            policy=policy,
            hardware=self.hardware,
            mirror=not full,
            seed=self.seed,
        )

    def points(self, need: Need) -> tuple[Point, ...]:
        """The points of ``need`` that this suite has."""
        return tuple(point for point in need.points if point in TP_8_16) if self.quick else need.points

    def experiments(self, tables: Sequence[str]) -> list[Experiment]:
        """All that ``tables`` need, each once."""
        found: dict[str, Experiment] = {}
        for need in (need for table in tables for need in NEEDS[table]):
            for point in self.points(need):
                for policy in need.policies:
                    item = self.experiment(point, policy, need.machine, need.mirror)
                    found.setdefault(item.key, item)
        return list(found.values())
