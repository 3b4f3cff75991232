"""The output folder of a run or a comparison, read and explained."""

from pathlib import Path
from typing import Any

from t3sim.common.user_input import readable
from t3sim.run.records import Comparison, read_record
from t3sim.run.result import Result

from .case import Case, Finding
from .rules import findings


def read_records(folder: Path) -> list[Result]:
    """The records in the output of `t3 run` or `t3 compare`. Raises ValueError if it is neither."""
    compared, single = folder / "compare.json", folder / "result.json"
    if compared.exists():
        return list(read_record(compared, Comparison).runs.values())
    if single.exists():
        return [read_record(single, Result)]
    raise ValueError(
        f"{readable(folder)} must be the --out folder of `t3 run` or `t3 compare`, which holds result.json or "
        "compare.json"
    )


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
