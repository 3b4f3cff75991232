"""OpenT3 from Python: simulate sublayers under T3, compare policies, sweep machines; results as pandas frames.

>>> import opent3
>>> work = opent3.model_workload("t-nlg", "fc2", tp=8)
>>> both = opent3.compare(work, policies=("sequential", "t3-mca"), machine="paper", mirror=True, hardware="golden")
>>> both.speedups["t3-mca"]  # doctest: +SKIP
>>> both.frame()["time_ns.total"]  # doctest: +SKIP

Values that cannot be simulated raise ValueError; the message names the option, its rule and the value.
"""

from t3sim import __version__
from t3sim.inputs.machine.files import Machine, load_machine, preset_names
from t3sim.inputs.transformer.config_file import own_model
from t3sim.inputs.transformer.sublayers import sublayer_workload
from t3sim.inputs.workload import MODELS, Workload, custom_workload, model_workload
from t3sim.run.records import read_result
from t3sim.run.request import BACKENDS, POLICIES, RunRequest, SimulationError
from t3sim.run.result import Result
from t3sim.study.runner import RunsFailedError
from t3sim.study.suite import Point, own_points
from t3sim.study.sweep import chosen_assumptions as assumptions

from .runs import Comparison, Options, Run, compare, requests_of, run
from .sweeps import SweepResult, sweep, vary

__all__ = [
    "BACKENDS",
    "MODELS",
    "POLICIES",
    "Comparison",
    "Machine",
    "Options",
    "Point",
    "Result",
    "Run",
    "RunRequest",
    "RunsFailedError",
    "SimulationError",
    "SweepResult",
    "Workload",
    "__version__",
    "assumptions",
    "compare",
    "custom_workload",
    "load_machine",
    "model_workload",
    "own_model",
    "own_points",
    "preset_names",
    "read_result",
    "requests_of",
    "run",
    "sublayer_workload",
    "sweep",
    "vary",
]
