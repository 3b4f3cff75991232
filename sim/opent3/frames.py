"""Records as pandas frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel
from t3sim.study.traffic_record import TrafficRecord

if TYPE_CHECKING:
    import pandas as pd


def record_frame(records: Iterable[BaseModel]) -> pd.DataFrame:
    """A row for each record; nested fields are columns with dots in their names, such as ``time_ns.total``."""
    import pandas as pd  # here, because it takes half a second to import

    return pd.json_normalize([record.model_dump(by_alias=True) for record in records])


def curve_frame(record: TrafficRecord) -> pd.DataFrame:
    """A row for each bin of each run: its machine and workload, ``start_ns``, and bytes by cause."""
    import pandas as pd

    parts = []
    for run in record.runs:
        curve, work = record.curves[run.curve], run.workload
        bins = len(next(iter(curve.bytes.values())))
        named = {"variant": run.machine, "model": work.model, "sublayer": work.sublayer, "tp": work.tp}
        times = np.arange(bins) * curve.bin_ns
        parts.append(pd.DataFrame(named | {"policy": run.policy, "start_ns": times} | curve.bytes))
    return pd.concat(parts, ignore_index=True)
