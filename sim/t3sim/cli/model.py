"""``t3 model``: where the time of a whole model goes, and how much of it an overlap can hide."""

from typing import Any

import click

from t3sim.inputs.machine.files import parse_settings
from t3sim.inputs.transformer.notes import size_text
from t3sim.inputs.transformer.sublayers import sublayer_runs
from t3sim.inputs.transformer.transformer import Phase
from t3sim.inputs.workload import MAX_TP, MODELS, named_model
from t3sim.run.request import Backend
from t3sim.study.end_to_end import SUBLAYERS
from t3sim.study.layer.work import ATTENTIONS, AttentionKernels
from t3sim.study.operators import PHASES, layer_operators
from t3sim.study.suite import BASELINE, OVERLAPPED, Point, Suite

from .errors import Mismatch
from .reproduce import run_all, where_options, wide_console
from .simulation.machine_options import machine_options
from .simulation.own_model import model_of, own_model_options, print_assumptions

DEFAULT = "t-nlg"
"""Model without ``--model`` and ``--hf``."""


@click.command()
@click.option("--model", help=f"Model: {', '.join(MODELS)}.  [default: {DEFAULT}]")
@own_model_options
@click.option("--tp", type=int, help=f"Tensor-parallel GPUs, 2 to {MAX_TP}.  [default: the paper's lowest; --hf: 8]")
@click.option("--phase", default="training", help=f"What runs: {' or '.join(PHASES)}; with --hf also decode.")
@click.option("--attention", default="unfused", help=f"Attention: {' or '.join(ATTENTIONS)}.")
@click.option("--optimizer", is_flag=True, help="Add one Adam step to the training phase.")
@machine_options("golden")
@where_options
def model(
    model: str | None, tp: int | None, phase: Phase, attention: AttentionKernels, optimizer: bool, hardware: Backend,
    machine: str, settings: tuple[str, ...], jobs: int, scheduler: str | None, **tokens: Any,
) -> None:  # fmt: skip
    """Show where the time of a whole model goes.

    The all-reduced sublayers are simulated, everything else is a roofline. One GPU of the ring is simulated. Finished
    runs are kept, as with reproduce.
    """
    own = model_of({**tokens, "phase": phase}, phase_is_own=False)
    if own is not None and model is not None:
        raise ValueError("give either --hf or --model, not both")
    name = own.name if own is not None else model or DEFAULT
    degree = tp if tp is not None else 8 if own is not None else named_model(name).tp[0]
    layer_operators(own or name, degree, phase, attention)  # refuses what cannot be before anything runs
    if optimizer and phase != "training":
        raise ValueError(f"--optimizer belongs to --phase training, not to {phase!r}")
    suite = Suite(machine=machine, settings=parse_settings(settings), hardware=hardware, quick=True, own=own)
    sublayers = SUBLAYERS[phase] if own is None else tuple(sublayer_runs(own, degree))
    points = [Point(model=name, sublayer=sublayer, tp=degree) for sublayer in sublayers]
    wanted = [(point, policy) for point in points for policy in (BASELINE, *OVERLAPPED)]
    store = run_all([suite.experiment(point, policy) for point, policy in wanted], jobs, "model", scheduler)

    from t3sim.run.policies import failures
    from t3sim.study.evaluation import Evaluation
    from t3sim.study.model_tables import amdahl_text, operator_table, policy_table

    evaluation = Evaluation(suite, store)
    time = evaluation.model_time(name, degree, phase, attention, optimizer=optimizer)
    console = wide_console()
    console.print(f"{name}, TP {degree}, {phase}, {attention} attention, on machine {machine}", highlight=False)
    if own is not None:
        console.print(size_text(own))
    print_assumptions(console, own, degree, suite.machine_of("base"))
    for part in (operator_table(time), policy_table(time), amdahl_text(time)):
        console.print()
        console.print(part, highlight=False)
    records = (evaluation.record(point, policy) for point, policy in wanted)
    wrong = [f"{record.workload.sublayer} {text}" for record in records for text in failures(record)]
    if wrong:
        raise Mismatch("; ".join(wrong))
