"""No constant hides, and none knows the answer: sources for all, and no way from a name into a simulation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import t3sim
from t3hdl.config import PARAMETERS
from t3sim.inputs.machine.describe import settings
from t3sim.inputs.machine.files import load_machine, preset_names
from t3sim.inputs.machine.machine import SECTIONS
from t3sim.inputs.workload import INNER_MULTIPLE, Workload, custom_workload, model_workload
from t3sim.run import plan
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest

SIM = Path(t3sim.__file__).parent
SOURCE = re.compile(r"\[[PDAS]\] .{5,}|HBM2_\w+ of Ramulator 2\.1.*|HBM2 of PIMSimulator: .+|(GPGPU|Accel)-Sim: .{5,}")
COMMANDS = {"cli/simulation/", "cli/model.py", "cli/reproduce.py", "cli/sweep.py", "validation/memory_rate/regimes.py"}
"""Files where a model is named: those of the command line, or folders with all of theirs, and measured regimes."""
NAMERS = COMMANDS | {
    "cli/tables.py",
    "inputs/transformer/",
    "inputs/workload.py",
    "run/policies.py",
    "run/result.py",
    "run/timeline.py",
}
"""Files, or folders with all of theirs (beside study/, report/, pages/), that may know a workload's name: they make
workloads, or name them for people."""
OF_THE_SHAPE = {
    *(f"output.{name}" for name in (
        "m", "n", "rows", "cols", "tiles", "pitch_lines", "slack_bytes", "tile_rows", "tile_cols", "wavefront_rows",
        "tile_lines", "line", "receive_line",
    )),
    *(f"gemm.{name}" for name in (
        "k", "slabs", "slab_clocks", "last_slab_clocks", "a_line", "b_line", "a_pitch_lines", "b_pitch_lines",
    )),
    "link.gpus", "own.update_lines", "own.output_bytes", "time.bin_cycles", "unit.mca",
}  # fmt: skip
"""What the engine's constants take from sizes: the shape, the tile that a rule chooses for it, addresses, counts,
whether compute goes first."""
OF_THE_RING = {"link.gpus", "own.update_lines", "time.bin_cycles", "unit.mca"}
"""Those that differ with the number of GPUs alone: the ring's length, this GPU's share, the timeline's resolution,
whether compute goes first."""


@pytest.mark.parametrize("name", preset_names())
def test_every_constant_of_a_preset_is_listed_with_its_source(name):
    machine = load_machine(name)
    listed = settings(machine)
    fields = {f"{section}.{key}" for section, model in SECTIONS.items() for key in model.model_fields}
    assert listed.keys() | {f"hardware.{parameter}" for parameter in PARAMETERS} == fields
    for key in listed:
        assert SOURCE.fullmatch(machine.sources[key]), f"{name}: {key} has no proper source: {machine.sources[key]!r}"


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every source of the simulator below sim/t3sim but those that ask for many runs, or show them."""
    for path in sorted(SIM.rglob("*.py")):
        if path.relative_to(SIM).parts[0] not in ("study", "report"):
            yield path.relative_to(SIM).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_that_simulates_reads_the_names_of_model_and_sublayer():
    readers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("model", "sublayer", "layers", "hidden"))
        or (isinstance(node, ast.Constant) and node.value in ("model", "sublayer"))
    }
    assert [name for name in readers if not name.startswith(tuple(NAMERS))] == []


def test_nothing_that_simulates_knows_the_table_of_models():
    table = {"MODELS", "INNER_MULTIPLE", "model_workload", "Model", "named_model"}
    importers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & table
    }
    assert [name for name in importers if not name.startswith(tuple(COMMANDS))] == []


@pytest.mark.parametrize(
    "name",
    [
        "inputs/machine/files.py",
        "inputs/machine/sections.py",
        "inputs/machine/hbm.py",
        "collective/arbitration.py",
        "dram/hbm.py",
        "dram/timing.py",
        "hardware/backends.py",
    ],
)
def test_machines_know_no_workload(name):
    tree = dict(modules())[name]
    imported = {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for word in (node.module or "", *(alias.name for alias in node.names))
    }
    assert not {word for word in imported if "workload" in word or "request" in word}


def record(workload: Workload, policy: str, machine: str = "paper") -> dict[str, int]:
    """The engine's constants of the GPU with the largest inner dimension."""
    of_run = RunPlan(RunRequest(workload=workload, machine=load_machine(machine), policy=policy))
    models = plan.constants(of_run, 0) | dict(zip(("dma", "kernels"), plan.movers(of_run, 0), strict=True))
    return {f"{model}.{name}": value for model, values in models.items() for name, value in values.items()}


@pytest.mark.parametrize("policy", ["sequential", "t3", "t3-mca"])
@pytest.mark.parametrize("sublayer", INNER_MULTIPLE)
def test_a_name_changes_no_constant(policy, sublayer):
    named = model_workload("t-nlg", sublayer, 8)
    nameless = custom_workload(named.m, named.n, named.k, named.tp)
    renamed = Workload(model="gpt-3", sublayer="op", tp=named.tp, m=named.m, n=named.n, k=named.k)
    assert record(named, policy) == record(nameless, policy) == record(renamed, policy)


def differing(records: list[dict[str, int]]) -> set[str]:
    return {key for key in records[0] if len({record[key] for record in records}) > 1}


@pytest.mark.parametrize("policy", ["sequential", "t3", "t3-mca"])
def test_only_what_sizes_determine_differs_between_workloads(policy):
    pairs = [("mega-gpt-2", 8), ("mega-gpt-2", 16), ("t-nlg", 8), ("t-nlg", 16), ("gpt-3", 32), ("mt-nlg", 32)]
    records = [record(model_workload(model, sub, tp), policy) for model, tp in pairs for sub in INNER_MULTIPLE]
    assert differing(records) <= OF_THE_SHAPE


@pytest.mark.parametrize("policy", ["sequential", "t3", "t3-mca"])
def test_only_the_ring_differs_between_degrees_of_parallelism(policy):
    """The same GEMM on every GPU, in rings of other lengths."""
    records = [record(custom_workload(8192, 4096, 2128 * tp, tp), policy) for tp in (2, 8, 16, 64)]
    assert differing(records) <= OF_THE_RING
