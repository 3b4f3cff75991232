"""The page of the map: GEMMs that nobody had seen when the rule of arbitration was chosen, and pairs of changes."""

from t3sim.inputs.workload import custom_workload
from t3sim.run.result import WorkloadRecord
from t3sim.study.arbitration.record import ArbitrationMap

from docs.pages.map import costs_of, gains_of, pairs_of
from tests.support.sample_map import sample_gains, sample_map


def drawn(count: int, losing: int) -> ArbitrationMap:
    """A GEMM of a model, and ``count`` random ones, of which that with this number loses."""
    record = sample_gains()
    base = record.machines[0]
    loss, same = base.cells
    works = [custom_workload(512 + number, 512, 512, 4) for number in range(count)]
    cells = [same, *(loss if number == losing else same for number in range(count))]
    return record.model_copy(
        update={
            "gemms": [record.gemms[0], *map(WorkloadRecord.of, works)],
            "machines": [base.model_copy(update={"cells": cells})],
        }
    )


def test_random_gemms_are_a_hold_out():
    text = " ".join(gains_of("name", drawn(3, losing=1)).split())
    assert (
        "t3-mca against t3, GEMMs in all: 4; of them changed by arbitration: 1; with a loss above 0.1%: 1 (at" in text
    )
    assert "No rule was chosen by the 3 random GEMMs" in text
    assert "Of them: t3-mca against t3, GEMMs in all: 3; of them changed by arbitration: 1; with a loss above" in text


def test_noise_is_that_of_gemms_that_arbitration_changes():
    """Where t3-mca is t3, every launch gains nothing: that says nothing of noise."""
    record = drawn(3, losing=1)
    base = record.machines[0]
    cells = [cell.model_copy(update={"launches": 3, "spread": 0.004 if cell.differs else 0.0}) for cell in base.cells]
    launched = record.model_copy(update={"machines": [base.model_copy(update={"cells": cells})]})
    text = " ".join(gains_of("name", launched).split())
    assert "Half of the 1 GEMMs that arbitration changes then gain by 0.40 %" in text
    assert "513 x 512 x 512 TP 4 by 0.40 %" in text
    assert "Half of" not in gains_of("name", record), "of one launch nothing is known"


def test_without_such_there_is_no_hold_out():
    assert "No rule was chosen by" not in gains_of("name", drawn(0, losing=0))


def test_pairs_of_changes_are_listed_and_single_changes_are_not():
    rows = [line for line in pairs_of("name", sample_map()).splitlines() if line.startswith("| `")]
    assert [row.split(" | ")[:4] for row in rows] == [
        ["| `dispatch-stage + order-age`", "t-nlg fc2 TP 8", "1.060", "1.030"],
        ["| `dispatch-stage + order-age`", "t-nlg op TP 8", "1.010", "1.010"],
    ]
    assert rows[0].endswith("| +1.5 |") and rows[1].endswith("| +0.0 |")


def costly(*above: tuple[float, float]) -> ArbitrationMap:
    """A machine and a change of each cost; the speedups of t3-mca on both GEMMs are such that the bound, 2, is that far
    away."""
    record = sample_map()
    machines = []
    names = ["base", *(f"cost-{number}" for number in range(1, len(above)))]
    for name, pair in zip(names, above, strict=True):
        cells = []
        for cell, share in zip(record.machines[0].cells, pair, strict=True):
            mca = cell.policies["t3-mca"].model_copy(update={"speedup": 2 / (1 + share)})
            t3 = cell.policies["t3"].model_copy(update={"speedup": 2 / (1.1 + share)})
            policies = cell.policies | {"t3": t3, "t3-mca": mca}
            cells.append(cell.model_copy(update={"ideal": 2.0, "policies": policies}))
        why = record.machines[1].why
        update = {"name": name, "settings": {"a.b": 1} if name != "base" else {}, "why": why, "cells": cells}
        machines.append(record.machines[0].model_copy(update=update))
    return record.model_copy(update={"machines": machines})


def test_costs_are_points_of_the_bound_of_gemms_that_are_far_from_it():
    text = costs_of("name", costly((0.15, 0.01), (0.05, 0.0), (0.2, 0.0)))
    rows = [line for line in text.splitlines() if line.startswith("| t-nlg")]
    assert rows == ["| t-nlg fc2 TP 8 | +25.0 | +15.0 | -10.0 | +5.0 |"], "the other is within 2 %"
    assert "with `1` (-10.0)." in text, "the change that makes it worse takes nothing away"
    assert "- `1`: `a.b=1`. A reason." in text


def test_costs_of_gemms_at_their_bound_are_none():
    assert costs_of("name", costly((0.01, 0.0), (0.0, 0.0))) == "No GEMM is that far above its bound.\n\n"
