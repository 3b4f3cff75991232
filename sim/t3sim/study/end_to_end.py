"""The time of a whole model: simulated all-reduced sublayers, and a roofline for everything else.

One iteration of training is a forward and a backward pass over the model's tokens, the prompt phase a forward pass.
The optimizer's step is not part of it unless asked for: an optimizer step follows several iterations of gradient
accumulation and is split over data-parallel GPUs, neither of which the paper gives; and the published shares of
communication, up to 43 % in the prompt phase and 34 % in training, agree with three times the compute for twice the
all-reduces alone: 0.43 -> 2 x 0.43 / (2 x 0.43 + 3 x 0.57) = 0.335.

Amdahl's law is in the result: only ``sublayer_share`` of the sequential time can become shorter, and of that only the
shorter of GEMM and reduce-scatter, so that ``overlap_limit`` bounds what overlap gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from t3sim.inputs.machine.files import Machine
from t3sim.inputs.transformer.sublayers import sublayer_runs
from t3sim.inputs.transformer.transformer import Phase
from t3sim.inputs.workload import check_name
from t3sim.run.ideal import overlapped_ns
from t3sim.run.result import TimeNs

from .layer.operators import Named, counted_operators, model_operators, optimizer_operator, sized_model
from .layer.roofline import OperatorTime, operator_time
from .layer.work import ATTENTIONS, AttentionKernels
from .suite import BASELINE


@dataclass(frozen=True, kw_only=True)
class ModelTime:
    """Where the time of one iteration or prompt goes, in ns, on one GPU of a tensor-parallel group.

    ``operators``: those not simulated, with their rooflines and how often they run; ``sublayers``: policy -> sublayer
    -> simulated times of one run; ``runs``: sublayer -> how often it runs.
    """

    model: str
    tp: int
    phase: Phase
    attention: AttentionKernels
    runs: Mapping[str, int]
    operators: tuple[OperatorTime, ...]
    sublayers: Mapping[str, Mapping[str, TimeNs]]

    @property
    def other_ns(self) -> float:
        """Time outside of the all-reduced sublayers, the same for every policy."""
        return sum(operator.total_ns for operator in self.operators)

    def sublayer_ns(self, policy: str) -> float:
        """Time in the all-reduced sublayers. KeyError for a policy that was not given, here and below."""
        return sum(self.runs[name] * time.total for name, time in self.sublayers[policy].items())

    def total_ns(self, policy: str) -> float:
        """Time of the model."""
        return self.other_ns + self.sublayer_ns(policy)

    def speedup(self, policy: str) -> float:
        """Over the sequential policy."""
        return self.total_ns(BASELINE) / self.total_ns(policy)

    def clearing_ns(self, policy: str) -> float:
        """Time of clearing the tracked outputs if the driver does it; outside the total, as in a run's record."""
        return sum(self.runs[name] * (time.init_write or 0) for name, time in self.sublayers[policy].items())

    @property
    def sublayer_share(self) -> float:
        """Part of the sequential time in all-reduced sublayers: Amdahl's fraction."""
        return self.sublayer_ns(BASELINE) / self.total_ns(BASELINE)

    @property
    def communication_share(self) -> float:
        """Part of the sequential time in reduce-scatter and all-gather; up to 0.34 of training and 0.43 of the prompt
        phase in the paper, which does not say of which model."""
        times = self.sublayers[BASELINE].items()
        communication = sum(self.runs[name] * (time.reduce_scatter + time.all_gather) for name, time in times)
        return communication / self.total_ns(BASELINE)

    @property
    def overlap_limit(self) -> float:
        """Speedup if every sublayer took max(GEMM, reduce-scatter) + all-gather, from the sequential run's times."""
        times = self.sublayers[BASELINE].items()
        best = sum(self.runs[name] * overlapped_ns(time, time) for name, time in times)
        return self.total_ns(BASELINE) / (self.other_ns + best)

    @property
    def communication_limit(self) -> float:
        """Speedup if communication took no time at all."""
        return 1 / (1 - self.communication_share)

    def shares(self, policy: str) -> dict[str, float]:
        """Operator or all-reduced sublayer (``sublayer op``) -> its part of the time under ``policy``. Sums to 1."""
        total = self.total_ns(policy)
        simulated = {f"sublayer {name}": self.runs[name] * time.total for name, time in self.sublayers[policy].items()}
        computed = {time.operator.name: time.total_ns for time in self.operators}
        return {name: ns / total for name, ns in (simulated | computed).items()}


def model_time(
    model: Named,
    tp: int,
    phase: Phase,
    sublayer_ns: Mapping[str, Mapping[str, TimeNs]],
    machine: Machine,
    attention: AttentionKernels = "unfused",
    *,
    optimizer: bool = False,
) -> ModelTime:
    """The time of ``model`` on ``tp`` GPUs, with the simulated times of its all-reduced sublayers.

    ``sublayer_ns``: policy -> sublayer -> ``time_ns`` of a run's record, for ``sequential`` and the policies to
    compare with it; sublayers that the phase does not have are ignored. ``optimizer``: one Adam step is part of the
    time. Raises ValueError for an unknown model, phase or attention, an optimizer in the prompt phase, or a policy or
    sublayer that is missing.
    """
    sized = sized_model(model, phase)
    check_name("attention", attention, ATTENTIONS)
    if optimizer and phase != "training":
        raise ValueError(f"an optimizer step belongs to the training phase, not to {phase!r}")
    if BASELINE not in sublayer_ns:
        raise ValueError(f"sublayer times need the policy {BASELINE!r}; given: {', '.join(sublayer_ns) or 'none'}")
    counted = counted_operators(model, tp, phase, attention)
    runs = sublayer_runs(sized, tp)
    sublayers = {policy: _needed(policy, times, phase, runs) for policy, times in sublayer_ns.items()}
    once = [*model_operators(model, tp, phase), *([optimizer_operator(model, tp)] if optimizer else [])]
    return ModelTime(
        model=sized.name,
        tp=tp,
        phase=phase,
        attention=attention,
        runs=runs,
        operators=(
            *(operator_time(item, machine, count) for item, count in counted.items() if item.sublayer is None),
            *(operator_time(operator, machine) for operator in once),
        ),
        sublayers=sublayers,
    )


def _needed(policy: str, times: Mapping[str, TimeNs], phase: Phase, runs: Mapping[str, int]) -> dict[str, TimeNs]:
    missing = [sublayer for sublayer in runs if sublayer not in times]
    if missing:
        raise ValueError(f"the {phase} phase needs times of the sublayers {', '.join(missing)} under policy {policy!r}")
    return {sublayer: times[sublayer] for sublayer in runs}
