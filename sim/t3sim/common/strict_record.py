"""What the records of runs, studies and measurements have in common."""

from pydantic import BaseModel, ConfigDict


class StrictRecord(BaseModel):
    """A record that is written as JSON and read again: it has its fields and no others, none of them changes, and every
    number is one that JSON has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
