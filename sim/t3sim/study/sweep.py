"""``t3 sweep``: the same runs on many machines, and what that does to the results."""

import itertools
import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord
from t3sim.common.user_input import shortened
from t3sim.inputs import arguments
from t3sim.inputs.machine.settings import parse_setting
from t3sim.inputs.transformer.transformer import SizedModel
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import failures
from t3sim.run.request import POLICIES, Backend, Policy
from t3sim.run.result import Result

from .evaluation import Evaluation, geomean
from .experiment import Experiment
from .records.titles import sublayer_title
from .sources import digest_for
from .store import Store
from .suite import BASELINE, Point, Suite

BASE = "base"
"""Name of the machine without a change."""


class Variant(BaseModel):
    """Another machine file, changed machine values, or both; and in one sentence why somebody may want them so."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    machine: str | None = None
    settings: dict[str, Any] = {}
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """``policies`` at ``points`` on every variant of a machine; the sequential policy is always among them."""

    suite: Suite
    variants: Mapping[str, Variant]
    points: tuple[Point, ...]
    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        for what, chosen in (("machine", self.variants), ("point", self.points), ("policy", self.policies)):
            if not chosen:
                raise ValueError(f"a sweep must have at least one {what}, and has none: name one")
            if again := [item for item, count in Counter([*chosen]).items() if count > 1]:
                raise ValueError(
                    f"a sweep must have each {what} once, and {_title(again[0])} comes again: leave it out"
                )
        for policy in self.policies:
            if policy not in POLICIES:
                raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")

    @property
    def simulated(self) -> list[Policy]:
        """The policies that are simulated: those that computed ones are computed from, not these."""
        found = [source for policy in (BASELINE, *self.policies) for source in COMPUTED.get(policy, (policy,))]
        return list(dict.fromkeys(found))

    def suites(self) -> Iterator[tuple[str, Suite]]:
        """Name and suite of every variant. Raises ValueError for an illegal machine value when it is used."""
        for name, variant in self.variants.items():
            settings = {**self.suite.settings, **variant.settings}
            yield name, replace(self.suite, machine=variant.machine or self.suite.machine, settings=settings)

    def experiments(self) -> list[Experiment]:
        """All that must be simulated, each once. Raises ValueError, with point and machine, for what cannot be."""
        found: dict[str, Experiment] = {}
        for name, suite in self.suites():
            suite.machine_of("base")  # an illegal value is no matter of a point
            for point, policy in itertools.product(self.points, self.simulated):
                try:
                    item = suite.experiment(point, policy)
                except ValueError as error:
                    named = suite.machine if name in (BASE, suite.machine) else f"{suite.machine} with {name}"
                    raise ValueError(f"{point.title} on machine {named}: {error}") from error
                found.setdefault(item.key, item)
        return list(found.values())


def _title(item: Point | str) -> str:
    return item.title if isinstance(item, Point) else item


TRAFFIC_MEANS = ("gemm_reads", "data_movement")
"""Geometric means that are no speedups."""


class Geomeans(StrictRecord):
    """Geometric means over the points: speedups by policy, and of t3-mca, relative to sequential, the GEMM's reads
    (how many times fewer) and all DRAM traffic (bytes for a byte); None if t3-mca is not among the policies."""

    speedups: dict[Policy, float]
    gemm_reads: float | None
    data_movement: float | None

    @property
    def names(self) -> list[str]:
        """Of the means that there are."""
        return [*self.speedups, *(name for name in TRAFFIC_MEANS if getattr(self, name) is not None)]


class SweptRun(StrictRecord):
    """One run of a variant, and its speedup over the variant's sequential run."""

    speedup: float
    result: Result


class SweptVariant(StrictRecord):
    """A variant with its results; ``changes``: of each geometric mean against the first variant, in percent."""

    name: str
    machine: str
    settings: dict[str, Any]
    why: str
    geomeans: Geomeans
    changes: dict[str, float]
    runs: list[SweptRun]


class OwnModel(StrictRecord):
    """A model of the user's own (``--hf``), as far as the file does not say it; options of the same names."""

    phase: str
    batch: int
    sequence: int


class SweepRecord(StrictRecord):
    """All of ``sweep.json`` and ``sensitivity.json``; ``failures``: what does not add up. ``own``: None for a model of
    the paper's or a GEMM by its sizes, and in records from before it was kept.

    All variants have the means, changes and sublayers of the first one, and every sublayer has a sequential run and one
    under each policy that has a mean; else it is a ValueError.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    sources: str
    machine: str
    settings: dict[str, Any]
    hardware: Backend
    seed: int
    own: OwnModel | None = None
    variants: list[SweptVariant]
    failures: list[str]

    @model_validator(mode="after")
    def _has_alike_variants(self) -> Self:
        for item in self.variants:
            first = self.variants[0]
            sublayers = dict.fromkeys(sublayer_title(run.result.workload) for run in first.runs)
            policies = dict.fromkeys((BASELINE, *first.geomeans.speedups))
            runs = [f"{sublayer_title(run.result.workload)} {run.result.policy}" for run in item.runs]
            _check_alike(item.name, "mean", item.geomeans.names, first.geomeans.names)
            _check_alike(item.name, "change", list(item.changes), list(first.changes))
            _check_alike(item.name, "run", runs, [" ".join(both) for both in itertools.product(sublayers, policies)])
        return self


def _check_alike(variant: str, what: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises ValueError if ``found`` in the variant of that name is not what is ``wanted`` of all."""
    if found == wanted:
        return
    if missing := [name for name in wanted if name not in found]:
        raise ValueError(f"variant {shortened(variant)} has no {what} of {shortened(missing[0])}")
    raise ValueError(f"variant {shortened(variant)} must have the {what}s of the first one and no others, in order")


def sweep_record(sweep: Sweep, store: Store) -> SweepRecord:
    """The record of a sweep whose runs are finished. KeyError if one is not."""
    found: list[SweptVariant] = []
    for name, suite in sweep.suites():
        variant, evaluation = sweep.variants[name], Evaluation(suite, store)
        means = _geomeans(sweep, evaluation)
        found.append(
            SweptVariant(
                name=name, machine=suite.machine, settings=variant.settings, why=variant.why, geomeans=means,
                changes=_changes(found[0].geomeans if found else means, means),
                runs=[SweptRun(speedup=evaluation.speedup(point, policy), result=evaluation.record(point, policy))
                      for point in sweep.points for policy in dict.fromkeys((BASELINE, *sweep.policies))],
            )
        )  # fmt: skip
    suite = sweep.suite
    return SweepRecord(
        sources=digest_for(suite.hardware),
        machine=suite.machine,
        settings=dict(suite.settings),
        hardware=suite.hardware,
        seed=suite.seed,
        own=own_amounts(suite.own),
        variants=found,
        failures=[f"{item.name}: {text}" for item in found for run in item.runs for text in failures(run.result)],
    )


def own_amounts(own: SizedModel | None) -> OwnModel | None:
    """Tokens of a model of the user's own; None without one. A sequence has as many as its context, which in the decode
    phase is what the cache holds."""
    return None if own is None else OwnModel(phase=own.phase, batch=own.batch, sequence=own.context)


def _geomeans(sweep: Sweep, evaluation: Evaluation) -> Geomeans:
    def ratio(cause: str) -> float:
        return geomean(evaluation.traffic_ratio(point, (cause,)) for point in sweep.points)

    tracked = "t3-mca" in sweep.policies
    return Geomeans(
        speedups={policy: geomean(evaluation.speedups(sweep.points, policy)) for policy in sweep.policies},
        gemm_reads=1 / ratio("gemm_read") if tracked else None,
        data_movement=ratio("total") if tracked else None,
    )


def _changes(base: Geomeans, new: Geomeans) -> dict[str, float]:
    """In percent, by policy and by ``gemm_reads`` and ``data_movement``."""
    found: dict[str, float] = {name: 100 * (value / base.speedups[name] - 1) for name, value in new.speedups.items()}
    for name in TRAFFIC_MEANS:
        before, after = getattr(base, name), getattr(new, name)
        if before is not None and after is not None:
            found[name] = 100 * (after / before - 1)
    return found


@lru_cache
def assumptions() -> dict[str, Variant]:
    """The named variants of ``variants.toml``: the machine's assumptions, changed one at a time."""
    text = (resources.files(__package__) / "variants.toml").read_text(encoding="utf-8")
    return {name: Variant.model_validate(entry) for name, entry in tomllib.loads(text).items()}


def chosen_assumptions(names: Sequence[str] = ()) -> dict[str, Variant]:
    """The base and the variants called ``names``, or all. Raises ValueError for an unknown name."""
    known, names = assumptions(), arguments.items("names", names, str, "names of assumptions")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"--variants must name some of {', '.join(known)}, not {', '.join(unknown)}")
    return {BASE: Variant()} | {name: known[name] for name in names or known}


Axes = Mapping[str, Sequence[tuple[str, Any]]]
"""Machine key -> what it takes, each value with its name."""


def axes_of(texts: Iterable[str]) -> Axes:
    """The axes that a command line gives as ``key=value,value``.

    Values are items of a TOML array, such as ``75,150`` or ``[[64, 64]],[[128, 64]]``, or bare words. Raises
    ValueError for a text of another form, or a repeated key or value.
    """
    axes: dict[str, list[tuple[str, Any]]] = {}
    for text in texts:
        key, _, values = text.partition("=")
        key = key.strip()
        if key in axes:
            raise ValueError(f"--vary must name each key once, not {key} again")
        names = _texts(values)
        if not names or not all(names) or len(set(names)) != len(names):
            raise ValueError(f"--vary must have the form section.key=value,value with different values, not {text!r}")
        axes[key] = [(name, parse_setting(f"{key}={name}")[1]) for name in names]
    return axes


def product_of(axes: Axes) -> dict[str, Variant]:
    """Every combination of values, the last key changing fastest. Raises ValueError without a key, for a key without
    values or with one twice, and for more than MAX_COMBINATIONS."""
    if not axes:
        raise ValueError("--vary must name at least one machine value")
    for key, values in axes.items():
        names = [name for name, _ in values]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"--vary must give {key} different values, at least one, not {', '.join(names) or 'none'}")
    count = math.prod(map(len, axes.values()))
    if count > MAX_COMBINATIONS:
        raise ValueError(f"--vary makes {count} machines; at most {MAX_COMBINATIONS} are run at once")
    combinations = itertools.product(*([(key, *item) for item in values] for key, values in axes.items()))
    return {
        ", ".join(f"{key}={name}" for key, name, _ in combination): Variant(
            settings={key: value for key, _, value in combination}
        )
        for combination in combinations
    }


def _texts(values: str) -> list[str]:
    """The values as text: items of a TOML array, or else words separated by commas. ValueError if they are too deep."""
    try:
        found = tomllib.loads(f"values = [{values}]")["values"]
    except tomllib.TOMLDecodeError:
        return [name.strip() for name in values.split(",")]
    except RecursionError as error:
        raise ValueError(f"--vary must not nest lists so deeply: {shortened(values)}") from error
    # TOML has dates and times, which no machine takes; and it writes inf and nan in its own way.
    return [json.dumps(item, default=str).replace("Infinity", "inf").replace("NaN", "nan") for item in found]


MAX_COMBINATIONS = 256
"""Most machines of one sweep: more is rather a mistake than a wish."""
