"""Where results come from, and the commands that give them again."""

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from t3sim.inputs.machine.files import CONFIG, load_machine
from t3sim.inputs.machine.settings import literal, settings_text
from t3sim.inputs.workload import CUSTOM, MODELS
from t3sim.run.ideal import COMPUTED
from t3sim.run.result import Result, WorkloadRecord
from t3sim.study.arbitration.axes import NONE, known_axes
from t3sim.study.arbitration.random_gemms import random_points
from t3sim.study.arbitration.record import ArbitrationMap
from t3sim.study.layer.operators import OPTIMIZER
from t3sim.study.model_record import WholeModelRecord
from t3sim.study.reproduction import Reproduction
from t3sim.study.sources import Made, is_current
from t3sim.study.suite import QUICK_TABLES, TABLES
from t3sim.study.sweep import OwnModel, SweepRecord, Variant, axes_of, chosen_assumptions, product_of

from .folders import Config, Run, Runs
from .parts import DASH, Block, Cell, Code, Item, Table, Text

CONFIG_TITLE = f"{CONFIG}: the machine with all sources"
OWN_FILE = "CONFIG.JSON"
"""For the file of a model of the user's own, which no record holds."""
OWN_NOTE = (
    "is a model of your own, whose file a record does not hold: the command has the sizes of its GEMM, and the records "
    "then say custom."
)
Command = Sequence[tuple[str, ...]]
"""The words of a command, those of an option together."""


def runs_blocks(folder: Runs) -> list[Block]:
    """Provenance of every run of the folder, and how to get them again."""
    first = folder.runs[0]
    work = first.result.workload
    items: list[Item] = [
        Text(
            text="Save the machine below as `config.toml`; this command then gives the records again, byte for byte "
            "but for the machine's name and the settings, which the file contains. How many lines carry data "
            "(`--data-lines`) is not recorded: a run that was given a number needs it again."
            + (f" {work.model} {OWN_NOTE}" if work.model not in (*MODELS, CUSTOM) else "")
        ),
        Code(title="Command", text=shell(runs_command(folder))),
        Code(title=CONFIG_TITLE, text=first.config.text, file=CONFIG),
    ]
    return [
        Block(title="Provenance", items=_provenance(folder.runs)),
        Block(title="How to reproduce", items=items),
    ]


def _provenance(runs: Sequence[Run]) -> list[Table]:
    """A table of what all runs have in common, and one of what they have not."""
    fields: dict[str, Callable[[Run], Cell]] = {
        "version of OpenT3": lambda run: run.result.opent3,
        "T3 hardware": lambda run: run.result.hardware,
        "machine": lambda run: run.result.machine,
        "settings": lambda run: settings_text(run.result.settings),
        "GPUs simulated": lambda run: (
            f"{run.result.gpus_simulated} of {run.result.workload.tp}{', mirrored' if run.result.mirror else ''}"
        ),
        "seed": lambda run: str(run.result.seed),
        "digest of the machine": lambda run: run.result.provenance.machine if run.result.provenance else DASH,
        "digest of the hardware": lambda run: run.result.provenance.hardware if run.result.provenance else DASH,
        "digest of the sources": lambda run: run.result.provenance.sources if run.result.provenance else DASH,
        "real time: build (s)": lambda run: f"{run.wall.build:.1f}",
        "real time: simulation (s)": lambda run: f"{run.wall.simulate:.1f}",
    }
    rows = {title: [get(run) for run in runs] for title, get in fields.items()}
    same = [(title, cells[0]) for title, cells in rows.items() if len(set(cells)) == 1]
    tables = [Table(caption="What produced the results", head=("", "value"), rows=same, prose=(1,))]
    if other := [(title, *cells) for title, cells in rows.items() if len(set(cells)) > 1]:
        head = ("", *(run.result.policy for run in runs))
        tables.append(Table(caption="What differs between the runs", head=head, rows=other))
    return tables


def record_blocks(command: Command | None, facts: Mapping[str, str], config: Config | None) -> list[Block]:
    """Provenance of a record of many runs, its command if there is one, and its machine, ``config``, if it is kept."""
    table = Table(
        caption="What produced the results", head=("", "value"), rows=[*map(tuple, facts.items())], prose=(1,)
    )  # fmt: skip
    items: list[Item] = [
        Text(text=_note(command)),
        *([] if command is None else [Code(title="Command", text=shell(command))]),
        *([] if config is None else [Code(title=CONFIG_TITLE, text=config.text, file=CONFIG)]),
    ]
    return [Block(title="Provenance", items=[table]), Block(title="How to reproduce", items=items)]


def earlier(record: Made) -> list[Text]:
    """A sentence, if the simulator of a record is not the one that is installed."""
    if is_current(record):
        return []
    text = (
        "These results are from another version of the simulator than the one that writes this page: version and "
        "digest are under Provenance. The simulator that is installed may give other figures."
    )
    return [Text(text=text)]


def _note(command: Command | None) -> str:
    """What a reader must know of the command."""
    if command is None:
        return "What was run was chosen in Python (`opent3`): no options of a `t3` command name all of it."
    note = (
        "Finished runs are kept in the cache, so that the command repeats only what is not there. A machine that is a "
        "file must lie where the command names it."
    )
    if ("--hf", OWN_FILE) not in command:
        return note
    note += f" {OWN_FILE} stands for the file of your model, which a record does not hold"
    if any(words[0] == "--phase" for words in command):
        return f"{note}."
    return f"{note}; nor does this one, of an earlier version, hold `--phase`, `--batch` and `--sequence`."


def shell(command: Command) -> str:
    """The command as a shell reads it, an option to a line if it is long."""
    words = [shlex.join(words) for words in command]
    whole = " ".join(words)
    return whole if len(whole) < 100 else " \\\n    ".join(words)


def runs_command(folder: Runs) -> Command:
    """``t3 run`` or ``t3 compare`` with the options of the record."""
    first = folder.runs[0].result
    policies = ",".join(run.result.policy for run in folder.runs)
    option = "--policy" if folder.command == "run" else "--policies"
    return [
        ("t3", folder.command), *_workload(first.workload), ("--machine", CONFIG), (option, policies),
        ("--hardware", first.hardware), *([("--mirror",)] if first.mirror else []),
        *([("--no-contention",)] if any(map(_is_unobserved, folder.results)) else []),
        ("--seed", str(first.seed)), ("--out", folder.name),
    ]  # fmt: skip


def _is_unobserved(result: Result) -> bool:
    """Whether a run was simulated without a look at what its streams wait for."""
    return result.policy not in COMPUTED and result.contention is None


def _workload(work: WorkloadRecord) -> list[tuple[str, ...]]:
    tp = ("--tp", str(work.tp))
    if work.model not in MODELS:  # a model of the user's own is in a file of his; the GEMM is the same
        return [*_sizes(work), tp]
    return [("--model", work.model), ("--sublayer", work.sublayer), tp]


def _sizes(work: WorkloadRecord) -> list[tuple[str, ...]]:
    return [("--m", str(work.m)), ("--n", str(work.n)), ("--k", str(work.k_total))]


def reproduce_command(record: Reproduction, name: str) -> Command | None:
    """``t3 reproduce`` with the options of the record; None for another seed, which has no option there."""
    if record.seed:
        return None
    known = QUICK_TABLES if record.quick else TABLES
    chosen = [] if set(record.tables) == set(known) else [("--only", table) for table in record.tables]
    return [
        ("t3", "reproduce"), *chosen, *([("--quick",)] if record.quick else []), ("--machine", record.machine),
        *_set(record.settings), ("--hardware", record.hardware), ("--out", name),
    ]  # fmt: skip


def model_command(record: WholeModelRecord, name: str) -> Command | None:
    """``t3 model`` with the options of the record; None for another seed, which has no option there."""
    if record.seed:
        return None
    tokens = record.own.model_dump(exclude={"phase"}) if record.own else {}
    return [
        ("t3", "model"), ("--hf", OWN_FILE) if record.own else ("--model", record.model),
        *((f"--{name}", str(value)) for name, value in tokens.items()),
        ("--tp", str(record.tp)), ("--phase", record.phase), ("--attention", record.attention),
        *([("--optimizer",)] if any(item.name == OPTIMIZER for item in record.operators) else []),
        ("--machine", record.machine), *_set(record.settings), ("--hardware", record.hardware), ("--out", name),
    ]  # fmt: skip


def sweep_command(record: SweepRecord, name: str, *, assumptions: bool) -> Command | None:
    """``t3 sweep`` with the options of the record; None if no options name its sublayers, machines and seed, which
    Python may choose."""
    swept = _swept([run.result.workload for run in record.variants[0].runs], record.own)
    machines = _variants(record) if assumptions else _vary(record)
    if swept is None or machines is None or record.seed:
        return None
    return [
        ("t3", "sweep"), *machines, *swept,
        ("--policies", ",".join(record.variants[0].geomeans.speedups)), ("--machine", record.machine),
        *_set(record.settings), ("--hardware", record.hardware), ("--out", name),
    ]  # fmt: skip


def _swept(works: Sequence[WorkloadRecord], own: OwnModel | None) -> list[tuple[str, ...]] | None:
    """The options that choose what is swept: sublayers of models, or one GEMM by its sizes."""
    chosen = _points(works)
    if chosen is None:
        return None
    models, *others = ((option, ",".join(values)) for option, values in chosen.items())
    if all(work.model == CUSTOM for work in works):
        return [*_sizes(works[0]), others[-1]] if len({(work.m, work.n, work.k_total) for work in works}) == 1 else None
    if all(work.model in MODELS for work in works):
        return [models, *others]
    if len(chosen["--models"]) > 1:
        return None
    tokens = own.model_dump() if own else {}
    return [("--hf", OWN_FILE), *((f"--{name}", str(value)) for name, value in tokens.items()), *others]


def map_command(record: ArbitrationMap, name: str) -> Command | None:
    """``t3 map`` with the options of the record; None if no options name its GEMMs and seed, as of Python."""
    named = [gemm for gemm in record.gemms if gemm.model != CUSTOM]
    drawn = record.gemms[len(named) :]
    chosen = _points(named)
    if not chosen or record.seed or not _are_drawn(drawn, record):
        return None
    axes = [] if [*record.singles] == known_axes().usual else [("--axes", ",".join(record.singles) or NONE)]
    launches = record.machines[0].cells[0].launches
    return [
        ("t3", "map"), *([("--quick",)] if record.quick else []), *axes,
        *((option, ",".join(values)) for option, values in chosen.items()),
        *([("--random", str(len(drawn)))] if drawn else []),
        *([("--launches", str(launches))] if launches > 1 else []),
        ("--machine", record.machine), *_set(record.settings), ("--hardware", record.hardware), ("--out", name),
    ]  # fmt: skip


def _are_drawn(gemms: Sequence[WorkloadRecord], record: ArbitrationMap) -> bool:
    """Whether ``gemms`` are what ``--random`` draws on the machine of the record; not, if that is no longer there."""
    if not gemms:
        return True
    try:
        drawn = random_points(load_machine(record.machine, record.settings), len(gemms))
    except ValueError:
        return False
    sizes = [(CUSTOM, f"{gemm.m}x{gemm.n}x{gemm.k_total}", gemm.tp) for gemm in gemms]
    return [(point.model, point.sublayer, point.tp) for point in drawn] == sizes


def _points(works: Iterable[WorkloadRecord]) -> dict[str, list[str]] | None:
    """The options that choose sublayers, with their values; None if they do not choose exactly these."""
    points = list(dict.fromkeys((work.model, work.tp, work.sublayer) for work in works))  # as commands order them
    axes = [list(dict.fromkeys(values)) for values in zip(*points, strict=True)]
    if not points or list(itertools.product(*axes)) != points:
        return None
    models, degrees, sublayers = axes
    return {"--models": models, "--sublayers": sublayers, "--tp": [str(tp) for tp in degrees]}


def _set(settings: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [("--set", f"{key}={literal(value)}") for key, value in settings.items()]


def _variants(record: SweepRecord) -> list[tuple[str, ...]] | None:
    """The options for changes of the assumptions; None if the machines are others."""
    names = [variant.name for variant in record.variants[1:]]
    try:
        made = chosen_assumptions(names)
    except ValueError:
        return None
    return [("--assumptions",), ("--variants", ",".join(names))] if names and _makes(made, record) else None


def _vary(record: SweepRecord) -> list[tuple[str, ...]] | None:
    """Every key with its values, in their order; words without quotes or TOML, both of which ``--vary`` reads. None if
    these do not make the record's machines."""
    values: dict[str, dict[str, None]] = {}
    for variant in record.variants:
        for key, value in variant.settings.items():
            values.setdefault(key, {})[literal(value)] = None
    texts = [f"{key}={','.join(found)}" for key, found in values.items()]
    try:
        made = product_of(axes_of(texts))
    except ValueError:
        return None
    return [("--vary", text) for text in texts] if _makes(made, record) else None


def _makes(made: Mapping[str, Variant], record: SweepRecord) -> bool:
    """Whether the machines of a command are those of the record, by name and settings, in their order."""
    machines = [(name, item.machine or record.machine, item.settings) for name, item in made.items()]
    return machines == [(variant.name, variant.machine, variant.settings) for variant in record.variants]
