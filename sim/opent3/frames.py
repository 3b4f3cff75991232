"""Records as pandas frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    import pandas as pd


def record_frame(records: Iterable[BaseModel]) -> pd.DataFrame:
    """A row for each record; nested fields are columns with dots in their names, such as ``time_ns.total``."""
    import pandas as pd  # here, because it takes half a second to import

    return pd.json_normalize([record.model_dump(by_alias=True) for record in records])
