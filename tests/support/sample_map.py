"""A map of arbitration from made-up results: two GEMMs on five machines, each a little more contended."""

from t3sim.run.request import Policy
from t3sim.run.result import WorkloadRecord
from t3sim.study.arbitration.axes import known_axes
from t3sim.study.arbitration.record import ArbitrationMap, Cell, MappedMachine, PolicyCell

from tests.support.sample_result import T_NLG, sample_result

CHANGES = (("base", ()), ("dispatch-stage", ("dispatch-stage",)), ("order-age", ("order-age",)),
           ("dispatch-stage + order-age", ("dispatch-stage", "order-age")),
           ("lockstep", ("dispatch-stage", "release-performed")))  # fmt: skip


def sample_map() -> ArbitrationMap:
    """Machine by machine the GEMM takes longer under t3, and on the second GEMM arbitration is worth nothing."""
    axes = known_axes().of(("dispatch", "order", "release"))
    machines = []
    for index, (name, changes) in enumerate(CHANGES):
        cells = [_cell(1 + 0.02 * index, 1 + 0.01 * index), _cell(1.01, 1.01)]
        why = "" if " + " in name else "A reason."
        machines.append(
            MappedMachine(name=name, changes=list(changes), settings={}, why=why, rule="backlog", cells=cells)
        )
    op = WorkloadRecord.of(T_NLG).model_copy(update={"sublayer": "op"})
    return ArbitrationMap(
        sources="0" * 16, machine="paper", settings={}, hardware="golden", seed=0, quick=True,
        gemms=[WorkloadRecord.of(T_NLG), op], changes=axes.changes,
        singles={"dispatch": ["dispatch-stage"], "order": ["order-age"], "release": []}, machines=machines, failures=[],
    )  # fmt: skip


def sample_gains() -> ArbitrationMap:
    """One machine; the first GEMM loses by arbitration, the second gains nothing."""
    record = sample_map()
    base = record.machines[0]
    first, second = base.cells
    cells = [first.model_copy(update={"gain": 0.98, "ideal": 1.5}), second]
    machines = [base.model_copy(update={"cells": cells})]
    return record.model_copy(update={"singles": {}, "changes": {}, "machines": machines})


def _cell(t3: float, mca: float) -> Cell:
    alone = sample_result("sequential")
    policies: dict[Policy, PolicyCell] = {"sequential": PolicyCell.of(alone, alone)}
    times: dict[Policy, float] = {"t3": t3, "t3-mca": mca}
    for policy, gemm in times.items():
        policies[policy] = PolicyCell.of(sample_result(policy), alone).model_copy(update={"gemm": gemm})
    return Cell(worth=t3 / mca, gain=1 + (t3 - mca) / 2, ideal=1.4, pipeline=1.25, policies=policies)
