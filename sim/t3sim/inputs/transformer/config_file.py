"""Reads the ``config.json`` of a model in the Hugging Face format."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from t3sim.common.user_input import read_file, readable, shortened
from t3sim.inputs import arguments
from t3sim.inputs.workload import MAX_SIZE, check_name, is_taken

from .families.deepseek import DeepSeek
from .families.dense import Llama, Qwen2, Qwen3
from .families.family import Family
from .families.mixtures import Mixtral, Qwen2Moe, Qwen3Moe
from .families.parallel import Falcon, GptNeoX
from .transformer import PHASES, Phase, SizedModel

MAX_BYTES = 1 << 20
"""Size of a configuration file."""
MAX_BATCH, MAX_SEQUENCE = 1 << 16, MAX_SIZE
"""Most sequences at a time, and their most tokens."""

FAMILIES: Mapping[str, type[Family]] = MappingProxyType(
    {
        "llama": Llama,
        "mistral": Llama,
        "qwen2": Qwen2,
        "qwen3": Qwen3,
        "mixtral": Mixtral,
        "qwen2_moe": Qwen2Moe,
        "qwen3_moe": Qwen3Moe,
        "deepseek_v2": DeepSeek,
        "deepseek_v3": DeepSeek,
        "gpt_neox": GptNeoX,
        "falcon": Falcon,
    }
)
"""``model_type`` of a file -> its family."""


def own_model(path: str | Path, phase: Phase, batch: int, sequence: int) -> SizedModel:
    """The model of the file ``path`` on ``batch`` sequences of ``sequence`` tokens.

    In the decode phase every sequence has one new token, and a cache of ``sequence`` tokens with it. Raises ValueError
    for a file that cannot be read or is no such configuration, an unknown phase, or sizes out of range.
    """
    path = arguments.path("path", path)
    check_name("phase", phase, PHASES)
    batch, sequence = arguments.integer("--batch", batch), arguments.integer("--sequence", sequence)
    for option, value, most in (("--batch", batch, MAX_BATCH), ("--sequence", sequence, MAX_SEQUENCE)):
        if not 1 <= value <= most:
            raise ValueError(f"{option} must be in 1 to {most}, not {value}")
    if batch * (1 if phase == "decode" else sequence) > MAX_SIZE:
        raise ValueError(f"--batch x --sequence must be at most {MAX_SIZE} tokens, not {batch} x {sequence}")
    transformer = _family(path).transformer()
    return SizedModel(
        name=_name(path), transformer=transformer, parameters=transformer.parameters, phase=phase, batch=batch,
        sequence=1 if phase == "decode" else sequence, context=sequence,
    )  # fmt: skip


def _name(path: Path) -> str:
    """Of the file, or of its folder if it is a ``config.json`` as all are."""
    named = path if path.stem != "config" or not path.parent.name else path.parent
    name = readable(named.stem if named is path else named.name)
    if is_taken(name):
        raise ValueError(
            f"--hf {readable(path)} would give a model of the name {name!r}, which this program has: its results would "
            "seem to be those of the other; rename the file, or its folder if it is a config.json"
        )
    return name


def _family(path: Path) -> Family:
    where = f"--hf {readable(path)}"
    content = _content(path, where)
    if "model_type" not in content:
        raise ValueError(f"{where}: model_type is missing; it must be one of {', '.join(FAMILIES)}")
    kind = content["model_type"]
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"{where}: model_type must be one of {', '.join(FAMILIES)}, not {shortened(kind)}")
    try:
        return FAMILIES[kind].model_validate(content)
    except ValidationError as error:
        raise ValueError(f"{where} ({kind}): {'; '.join(map(_problem, error.errors()))}") from error


def _content(path: Path, where: str) -> dict[str, Any]:
    """The file as a JSON object."""
    try:
        content = json.loads(read_file(path, MAX_BYTES).decode("utf-8-sig"), parse_int=_whole)
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text ({error.reason})") from error
    except RecursionError as error:
        raise ValueError(f"{where} nests lists or objects too deeply") from error
    except ValueError as error:  # no JSON, a device, too large
        raise ValueError(f"{where} is not a JSON file of a model: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{where} must hold a JSON object, not {shortened(content)}")
    return content


def _whole(digits: str) -> int:
    """A number, which Python reads up to a few thousand digits."""
    try:
        return int(digits)
    except ValueError as error:
        raise ValueError(f"a number has {len(digits)} digits, and no size has so many") from error


def _problem(problem: Any) -> str:
    """One of pydantic's problems: key, rule, value."""
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    text = problem["msg"]
    return f"{name}: {text[0].lower()}{text[1:]}, not {shortened(problem['input'])}"
