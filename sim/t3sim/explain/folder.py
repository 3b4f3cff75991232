"""The output folder of a run or a comparison, read and explained."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from t3sim.common.user_input import read_file
from t3sim.run.result import Result

from .case import Case, Finding
from .rules import findings

MOST_BYTES = 1 << 24
"""Of a record, or of a comparison; a record has a few thousand."""


class _Comparison(BaseModel):
    """``compare.json``, as far as it is explained."""

    model_config = ConfigDict(extra="allow")
    runs: dict[str, Result]


def read_records(folder: Path) -> list[Result]:
    """The records in the output of `t3 run` or `t3 compare`. Raises ValueError if it is neither."""
    for name, model in (("compare.json", _Comparison), ("result.json", Result)):
        path = folder / name
        if not path.exists():
            continue
        try:
            content = model.model_validate_json(read_file(path, MOST_BYTES))
        except (OSError, ValidationError) as error:
            raise ValueError(f"{path} is not what this version of t3 writes: {_first(error)}; run it again") from error
        records = list(content.runs.values()) if isinstance(content, _Comparison) else [content]
        if not records:
            raise ValueError(f"{path} holds no run: compare policies again")
        return records
    raise ValueError(
        f"{folder} must be the --out folder of `t3 run` or `t3 compare`, which holds result.json or compare.json"
    )


def _first(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"


def explain(records: list[Result]) -> dict[str, list[Finding]]:
    """The findings of each record, by policy, in their order."""
    alone = next((record for record in records if record.policy == "sequential"), None)
    return {
        record.policy: findings(Case(record=record, alone=alone if record is not alone else None)) for record in records
    }


def to_json(explained: dict[str, list[Finding]]) -> dict[str, Any]:
    """The findings for machines."""
    return {
        "schema": 1,
        "runs": {
            policy: [{"rule": found.rule, "text": found.text, "figures": found.figures} for found in several]
            for policy, several in explained.items()
        },
    }
