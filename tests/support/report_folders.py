"""Output folders of every kind that a report shows, from made-up results, without pictures: in no time."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from t3sim.common.json_text import json_text
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs.machine.files import CONFIG, load_machine
from t3sim.inputs.workload import model_workload
from t3sim.run import timeline
from t3sim.run.ideal import COMPUTED, ideal_overlap
from t3sim.run.policies import write_comparison, write_run
from t3sim.run.provenance import Provenance
from t3sim.run.records import read_record
from t3sim.run.request import CAUSES, Policy, RunRequest, RunResult
from t3sim.run.result import Result, TimeNs
from t3sim.study.end_to_end import model_time
from t3sim.study.model_record import model_record
from t3sim.study.reproduction import Reproduction
from t3sim.study.suite import Suite
from t3sim.study.sweep import Geomeans, SweepRecord, SweptRun, SweptVariant
from t3sim.study.traffic_record import Curve, CurveUse, TrafficRecord

from tests.support.sample_map import sample_map
from tests.support.sample_result import T_NLG, sample_result, sample_run

ROOT = Path(__file__).parents[2]
REPRODUCTION = ROOT / "docs" / "results" / "reproduction"
"""The paper's evaluation, which the repository keeps."""
OTHER_SOURCES = "0123456789abcdef"
"""Digest of no simulator's sources."""
KINDS = ("run", "compare", "model", "sweep", "sensitivity", "map", "reproduce")
ALL: tuple[Policy, ...] = ("sequential", "sequential-nmc", "t3", "t3-mca", "ideal-overlap", "ideal-overlap-nmc")


def request_for(machine: str | Path = "paper", policy: Policy = "t3-mca") -> RunRequest:
    """T-NLG FC-2 at TP 8, all GPUs."""
    return RunRequest(workload=T_NLG, machine=load_machine(machine), policy=policy, hardware="rtl")


@contextmanager
def _no_pictures() -> Iterator[None]:
    """They take a second each, and no report reads them."""
    with patch.object(timeline, "draw_timeline"), patch.object(timeline, "draw_comparison"):
        yield


def run_folder(folder: Path, policy: Policy = "t3-mca", machine: str | Path = "paper") -> Path:
    """What ``t3 run`` writes."""
    with output_folder(folder) as out, _no_pictures():
        write_run(request_for(machine, policy), sample_run(policy), out)
    return folder


def without_queues(folder: Path) -> Path:
    """The folder of a run, as versions wrote it whose timelines had no queues (format 1)."""
    path = folder / "timeline.json"
    content = json.loads(path.read_text())
    for gpu in content["gpus"]:
        del gpu["queues"]
    path.write_text(json.dumps(content | {"schema": 1}))
    return folder


def compare_folder(folder: Path, chosen: Sequence[Policy] = ALL, machine: str | Path = "paper") -> Path:
    """What ``t3 compare`` writes."""
    results: dict[Policy, RunResult] = {}
    runs = {policy: sample_run(policy) for policy in ("sequential", "sequential-nmc", "t3", "t3-mca")}
    for policy in chosen:
        results[policy] = runs[policy] if policy in runs else ideal_overlap(
            policy, runs["sequential"], runs["sequential-nmc" if policy.endswith("-nmc") else "sequential"]
        )  # fmt: skip
    with output_folder(folder) as out, _no_pictures():
        write_comparison(request_for(machine), results, out)
    return folder


def sweep_record(settings: Sequence[dict[str, object]], names: Sequence[str], why: str = "") -> SweepRecord:
    """A sweep of two sublayers under four policies; machine by machine a little faster."""
    swept: tuple[Policy, ...] = ("sequential", "ideal-overlap", "t3", "t3-mca")
    variants = []
    for index, (name, changes) in enumerate(zip(names, settings, strict=True)):
        gains: dict[Policy, float] = {policy: 1.2 + 0.1 * index for policy in swept[1:]}
        provenance = Provenance.of(load_machine("toy", changes))
        runs = [
            SweptRun(speedup=gains.get(policy, 1.0), result=_with(sample_result(policy, workload), provenance))
            for workload in (T_NLG, model_workload("t-nlg", "op", 8))
            for policy in swept
        ]
        variants.append(SweptVariant(
            name=name, machine="toy", settings=changes, why=why and f"{why} {name}",
            geomeans=Geomeans(speedups=gains, gemm_reads=1.3, data_movement=0.7),
            changes={**dict.fromkeys(gains, 10.0 * index), "gemm_reads": 0.0, "data_movement": -1.5}, runs=runs,
        ))  # fmt: skip
    return SweepRecord(
        sources="0" * 16, machine="toy", settings={}, hardware="golden", seed=0, variants=variants, failures=[]
    )


def _with(result: Result, provenance: Provenance) -> Result:
    return result.model_copy(update={"machine": "toy", "provenance": provenance, "mirror": True, "gpus_simulated": 1})


def traffic_of(sources: str, runs: Iterable[tuple[str, Result]]) -> TrafficRecord:
    """Traffic over time for (machine, result) of what was simulated, each cause in a part of the time of its own."""
    curves, uses = [], []
    for machine, result in runs:
        if result.policy in COMPUTED:
            continue
        moved, bins = result.traffic_bytes_per_gpu, 12
        rates = {
            cause: [round(getattr(moved, cause) / 7) * (index <= place < index + 7) for place in range(bins)]
            for index, cause in enumerate(CAUSES)
        }
        uses.append(
            CurveUse(machine=machine, workload=result.workload, policy=result.policy, mirror=result.mirror,
                     curve=len(curves))
        )  # fmt: skip
        curves.append(Curve(bin_ns=result.time_ns.total / bins, bytes=rates))
    return TrafficRecord(sources=sources, curves=curves, runs=uses)


def sweep_folder(folder: Path, *, assumptions: bool = False) -> Path:
    """What ``t3 sweep`` writes, but for its pictures."""
    if assumptions:
        record = sweep_record([{}, {"link.gb_s": 75}, {"dma.block": "tile"}], ["base", "link-75", "block-tile"], "why")
    else:
        settings = [{"link.gb_s": rate, "dma.block": block} for rate in (10, 20) for block in ("tile", "column")]
        record = sweep_record(settings, [", ".join(f"{k}={v}" for k, v in item.items()) for item in settings])
    with output_folder(folder) as out:
        name = "sensitivity.json" if assumptions else "sweep.json"
        write_atomically(out / name, json_text(record.model_dump(by_alias=True)))
        runs = [(variant.name, run.result) for variant in record.variants for run in variant.runs]
        write_atomically(out / "traffic.json", traffic_of(record.sources, runs).text())
    return folder


def model_folder(folder: Path) -> Path:
    """What ``t3 model`` writes, but for its picture and its machine."""
    suite = Suite(machine="toy", hardware="golden", quick=True)
    provenance = Provenance.of(suite.machine_of("base"))
    policies: tuple[Policy, ...] = ("sequential", "t3", "t3-mca")
    records = tuple(
        _with(sample_result(policy, model_workload("t-nlg", sublayer, 8)), provenance)
        for sublayer in ("op", "fc2")
        for policy in policies
    )
    times: dict[str, dict[str, TimeNs]] = {policy: {} for policy in policies}
    for item in records:
        times[item.policy][item.workload.sublayer] = item.time_ns
    time = model_time("t-nlg", 8, "prompt", times, suite.machine_of("base"))
    with output_folder(folder) as out:
        write_atomically(out / "model.json", json_text(model_record(suite, time, records).model_dump(by_alias=True)))
    return folder


def reproduction_folder(folder: Path) -> Path:
    """The paper's evaluation that the repository keeps, as another simulator would have made it, without its machine,
    and with traffic over time."""
    shutil.copytree(REPRODUCTION, folder)
    (folder / CONFIG).unlink()
    record = read_record(folder / "reproduce.json", Reproduction).model_copy(update={"sources": OTHER_SOURCES})
    (folder / "reproduce.json").write_text(json_text(record.model_dump(by_alias=True)))
    runs = [(run.variant, run.result) for run in record.runs]
    (folder / "traffic.json").write_text(traffic_of(record.sources, runs).text())
    (folder / MANIFEST).write_text(Manifest.of(folder).text())
    return folder


def map_folder(folder: Path) -> Path:
    """What ``t3 map`` writes, but for its pictures."""
    with output_folder(folder) as out:
        write_atomically(out / "map.json", json_text(sample_map().model_dump(by_alias=True)))
    return folder


def folder_of(kind: str, folder: Path) -> Path:
    """A folder of ``kind`` at ``folder``."""
    makers = {"run": run_folder, "compare": compare_folder, "model": model_folder, "sweep": sweep_folder,
              "map": map_folder, "reproduce": reproduction_folder}  # fmt: skip
    return sweep_folder(folder, assumptions=True) if kind == "sensitivity" else makers[kind](folder)
