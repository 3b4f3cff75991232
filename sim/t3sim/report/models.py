"""The section of a whole model: where its time goes, by policy and by operator, and the runs that are in it."""

from t3sim.common.units import BYTES, FLOP, TIMES, unit_of, with_unit
from t3sim.inputs.machine.settings import machine_title, settings_text
from t3sim.run.timeline import ALL_GATHER, GEMM, REDUCE_SCATTER
from t3sim.study.model_record import WholeModelRecord

from .checks import check_cards, checks_block, hardware_block
from .configuration import cautions_of, record_machine_block
from .contention import contention_block
from .figures import OTHER, SERIES, stacked
from .folders import Modelled
from .parts import DASH, Block, Card, Cards, Chart, Section, Table, Text, count, sentence
from .provenance import model_command, record_blocks
from .quantities import time_chart, traffic_chart

PARTS = {
    "gemm": ("GEMM", GEMM), "exposed_reduce_scatter": ("exposed reduce-scatter", REDUCE_SCATTER),
    "all_gather": ("all-gather", ALL_GATHER), "other": ("other operators", OTHER),
}  # fmt: skip
"""Part of a policy's time -> what it is called, and its colour."""


def model_section(folder: Modelled) -> Section:
    """All blocks of a whole model."""
    record = folder.record
    runs = [(f"{item.result.workload.sublayer}, {item.result.policy}", item.result) for item in record.sublayers]
    results = [result for _, result in runs]
    return Section(
        title=f"Whole model: {record.model}, TP {record.tp}, {record.phase}",
        name=folder.name,
        facts=[
            f"{record.attention} attention",
            f"machine {machine_title(record.machine, record.settings)}",
            "all-reduced sublayers simulated (one GPU, its traffic mirrored), other operators from rooflines",
        ],
        blocks=[
            Block(title="Summary", items=[
                Cards(cards=[*_cards(record), *check_cards(results)]),
                *(Text(text=f"Does not add up: {text}.") for text in record.failures),
                *(Text(text=sentence(text)) for text in record.notes),
                *cautions_of(folder.config, record.machine),
            ]),
            Block(title="Time of the model", items=[_policies(record), Text(text=record.amdahl.text)]),
            Block(title="Time of every operator", items=[_operators(record)]),
            Block(title="Time split", items=[time_chart(runs, "Where the time of one run of a sublayer goes")]),
            Block(title="DRAM traffic", items=[traffic_chart(runs)]),
            contention_block(runs),
            checks_block(runs),
            hardware_block(runs),
            record_machine_block(folder.config, record.machine, record.settings, results),
            *record_blocks(
                model_command(record, folder.name),
                {
                    "version of OpenT3": record.opent3, "machine": record.machine, "T3 hardware": record.hardware,
                    "seed": str(record.seed), "settings of all runs": settings_text(record.settings),
                },
                folder.config,
            ),
        ],
    )  # fmt: skip


def _cards(record: WholeModelRecord) -> list[Card]:
    """The gain of every policy, what bounds it, and how much of the time it is about."""
    base, *others = record.policies.items()
    amdahl = record.amdahl
    return [
        Card(title="Time", value=with_unit(TIMES, base[1].total), note=base[0]),
        *(Card(title=f"{policy}, speedup", value=f"{times.speedup:.3f}x", note=with_unit(TIMES, times.total))
          for policy, times in others),
        Card(title="Bound: overlap", value=f"{amdahl.overlap_limit:.3f}x",
             note="reduce-scatter under the GEMM, without contention"),
        Card(title="Bound: no communication", value=f"{amdahl.communication_limit:.3f}x",
             note=f"communication is {amdahl.communication_share:.1%} of the time"),
        Card(title="All-reduced sublayers", value=f"{amdahl.sublayer_share:.1%}", note=f"of the time of {base[0]}"),
    ]  # fmt: skip


def _policies(record: WholeModelRecord) -> Chart:
    times = record.policies
    unit = unit_of(TIMES, (item.total for item in times.values()))
    parts = {title: [getattr(item, field) / unit.size for item in times.values()]
             for field, (title, _) in PARTS.items()}  # fmt: skip
    totals = [f"{unit.text(item.total)} {unit.name}" for item in times.values()]
    return Chart(
        title="Where the time of the model goes, by policy",
        summary="Time of the model: "
        + "; ".join(f"{name} {total}" for name, total in zip(times, totals, strict=True)) + ".",
        figure=stacked([*times], parts, dict(PARTS.values()), unit.title("time of the model"), totals),
        table=Table(
            caption="Time of the model and speedup over sequential",
            head=("policy", unit.title("total"), *(unit.title(title) for title, _ in PARTS.values()), "speedup"),
            rows=[
                (name, unit.text(item.total), *(unit.text(getattr(item, field)) for field in PARTS),
                 f"{item.speedup:.3f}")
                for name, item in times.items()
            ],
        ),
    )  # fmt: skip


def _operators(record: WholeModelRecord) -> Chart:
    """A bar for each operator and each simulated sublayer; together they are the sequential time."""
    policy, times = next(iter(record.policies.items()))
    alone = [item for item in record.sublayers if item.result.policy == policy]
    rows = [(f"sublayer {item.result.workload.sublayer}", item.runs * item.result.time_ns.total) for item in alone]
    rows += [(item.name, item.total_ns) for item in record.operators]
    unit = unit_of(TIMES, (ns for _, ns in rows))
    flop = unit_of(FLOP, (item.flop for item in record.operators))
    moved = unit_of(BYTES, (item.bytes for item in record.operators))
    simulated = [
        (name, count(item.runs), DASH, DASH, "simulated", unit.text(ns), f"{ns / times.total:.1%}")
        for item, (name, ns) in zip(alone, rows, strict=False)
    ]
    computed = [
        (item.name, count(item.runs), flop.text(item.flop) if item.flop else DASH, moved.text(item.bytes),
         item.limited_by, unit.text(item.total_ns), f"{item.total_ns / times.total:.1%}")
        for item in record.operators
    ]  # fmt: skip
    longest = max(rows, key=lambda row: row[1])
    return Chart(
        title=f"Time of every operator, {policy}",
        summary=f"Time of all runs of each operator. The longest: {longest[0]}, {with_unit(TIMES, longest[1])}.",
        figure=stacked(
            [name for name, _ in rows], {"all runs": [ns / unit.size for _, ns in rows]}, {"all runs": SERIES[0]},
            unit.title("time of all runs"), [f"{ns / times.total:.1%}" for _, ns in rows],
        ),
        table=Table(
            caption=f"Operators of {record.model}, {policy}",
            head=("operator", "runs", flop.title("work of one"), moved.title("bytes of one"), "limited by",
                  unit.title("all runs"), "share"),
            rows=[*simulated, *computed],
            prose=(4,),
        ),
    )  # fmt: skip
