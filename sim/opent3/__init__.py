"""OpenT3 from Python: what the command ``t3`` does, as functions; results as dataclasses and as pandas frames.

>>> import opent3
>>> work = opent3.model_workload("t-nlg", "fc2", tp=8)
>>> both = opent3.compare(work, policies=("sequential", "t3-mca"), machine="paper", mirror=True, hardware="golden")
>>> both.speedups["t3-mca"]  # doctest: +SKIP
>>> both.frame()["time_ns.total"]  # doctest: +SKIP
>>> print(opent3.explain(both))  # doctest: +SKIP

Values that cannot be simulated raise ValueError; the message names the option, its rule and the value.
"""

from t3sim import __version__
from t3sim.common.cache import BuildError
from t3sim.faults.classes import CLASSES as FAULT_CLASSES
from t3sim.faults.classes import KINDS as FAULT_KINDS
from t3sim.faults.classes import VARIANTS as FAULT_VARIANTS
from t3sim.inputs.machine.files import Machine, hardware_with, load_machine, preset_names
from t3sim.inputs.machine.settings import parse_settings
from t3sim.inputs.machine.standing import caution
from t3sim.inputs.transformer.config_file import FAMILIES, own_model
from t3sim.inputs.transformer.notes import notes, size_text
from t3sim.inputs.transformer.sublayers import sublayer_workload
from t3sim.inputs.transformer.transformer import PHASES, Phase, SizedModel
from t3sim.inputs.workload import INNER_MULTIPLE, MAX_TP, MODELS, Workload, custom_workload, model_workload
from t3sim.run.ideal import COMPUTED
from t3sim.run.policies import Watch
from t3sim.run.records import read_result
from t3sim.run.request import (
    BACKENDS,
    COMPARED,
    POLICIES,
    Backend,
    OnProgress,
    Policy,
    Preparation,
    Progress,
    RunRequest,
    SimulationError,
)
from t3sim.run.result import Result
from t3sim.study.arbitration.random_gemms import MOST as MAX_RANDOM
from t3sim.study.layer.operators import PHASES as MODEL_PHASES
from t3sim.study.layer.work import ATTENTIONS, AttentionKernels
from t3sim.study.runner import RunsFailedError, Status
from t3sim.study.suite import QUICK_TABLES, TABLES, Point, custom_point, custom_points, own_points
from t3sim.study.suite import sweep_points as model_points
from t3sim.study.sweep import chosen_assumptions as assumptions

from .injection import FaultResult, fault, faults
from .machines import MachineSummary, machine_frame, machine_summaries, new_machine
from .many import Finished, ManyOptions, Workers
from .models import ModelResult, model
from .options import Options, is_compiled, requests_of
from .reports import Explanation, explain, report
from .runs import Comparison, Run, compare, run
from .studies import (
    MAP_POINTS,
    MAX_LAUNCHES,
    QUICK_MAP_POINTS,
    MapResult,
    ReproductionResult,
    arbitration_map,
    map_points,
    reproduce,
)
from .sweeps import SweepResult, on_machines, sweep, varied, vary
from .validations import (
    GpuResult,
    bench,
    bench_scaling,
    validate_alu,
    validate_gpu,
    validate_hbm,
    validate_tracker,
)
from .waveforms import Waveforms, waves

__all__ = [
    "ATTENTIONS",
    "BACKENDS",
    "COMPARED",
    "COMPUTED",
    "FAMILIES",
    "FAULT_CLASSES",
    "FAULT_KINDS",
    "FAULT_VARIANTS",
    "INNER_MULTIPLE",
    "MAP_POINTS",
    "MAX_LAUNCHES",
    "MAX_RANDOM",
    "MAX_TP",
    "MODELS",
    "MODEL_PHASES",
    "PHASES",
    "POLICIES",
    "QUICK_MAP_POINTS",
    "QUICK_TABLES",
    "TABLES",
    "AttentionKernels",
    "Backend",
    "BuildError",
    "Comparison",
    "Explanation",
    "FaultResult",
    "Finished",
    "GpuResult",
    "Machine",
    "MachineSummary",
    "ManyOptions",
    "MapResult",
    "ModelResult",
    "OnProgress",
    "Options",
    "Phase",
    "Point",
    "Policy",
    "Preparation",
    "Progress",
    "ReproductionResult",
    "Result",
    "Run",
    "RunRequest",
    "RunsFailedError",
    "SimulationError",
    "SizedModel",
    "Status",
    "SweepResult",
    "Watch",
    "Waveforms",
    "Workers",
    "Workload",
    "__version__",
    "arbitration_map",
    "assumptions",
    "bench",
    "bench_scaling",
    "caution",
    "compare",
    "custom_point",
    "custom_points",
    "custom_workload",
    "explain",
    "fault",
    "faults",
    "hardware_with",
    "is_compiled",
    "load_machine",
    "machine_frame",
    "machine_summaries",
    "map_points",
    "model",
    "model_points",
    "model_workload",
    "new_machine",
    "notes",
    "on_machines",
    "own_model",
    "own_points",
    "parse_settings",
    "preset_names",
    "read_result",
    "report",
    "reproduce",
    "requests_of",
    "run",
    "size_text",
    "sublayer_workload",
    "sweep",
    "validate_alu",
    "validate_gpu",
    "validate_hbm",
    "validate_tracker",
    "varied",
    "vary",
    "waves",
]
