"""Whether a kept record is of today's simulator, and if not, whether that was seen to give the same."""

import hashlib
from math import comb
from pathlib import Path
from typing import Literal

from pydantic import Field
from t3sim.common.strict_record import StrictRecord
from t3sim.run.records import read_record
from t3sim.study.sources import Made, digest_for, is_current

CONFIRMED = "confirmed.json"
"""Beside a record that was confirmed."""
_EARLIER = "These results are from an earlier version of the simulator"
EARLIER = f"**{_EARLIER}.**"
_SHARE = 10
"""One result in so many is supposed to have changed, in the sentence on how likely that would have been seen."""


class Confirmed(StrictRecord):
    """Results of a record that another simulator was seen to give again, number by number.

    ``record_digest``: SHA-256 of the record's file; ``sources``: digest of the sources of that simulator; ``drawn`` at
    random of ``total`` results, which are called ``what``.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    record_digest: str
    sources: str
    what: str
    drawn: int = Field(ge=1)
    total: int = Field(ge=1)

    @property
    def chance(self) -> float:
        """How likely a draw has a result that changed, if one in ten did (hypergeometric, at least one)."""
        changed = -(-self.total // _SHARE)
        return 1 - comb(self.total - changed, self.drawn) / comb(self.total, self.drawn)

    @property
    def sentence(self) -> str:
        """What a page says of it."""
        if self.drawn == self.total:
            return f"{_EARLIER}; today's gives the same numbers for all {self.total} {self.what}."
        return (
            f"{_EARLIER}; today's gives the same numbers for {self.drawn} of the {self.total} {self.what}, drawn at "
            f"random (had one in {_SHARE} changed, such a draw would show it with a probability of "
            f"{int(100 * self.chance)} %)."
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def confirmed(record: Made, path: Path) -> Confirmed | None:
    """What was confirmed of this record, read from ``path``, with today's simulator; None if nothing. Raises ValueError
    if that cannot be read."""
    kept = path.with_name(CONFIRMED)
    if not kept.exists():
        return None
    found = read_record(kept, Confirmed)
    holds = found.record_digest == digest_of(path) and found.sources == digest_for(record.hardware)
    return found if holds else None


def made_by(record: Made, path: Path) -> list[str]:
    """A sentence on a record, read from ``path``, whose simulator is not this tree's; else none. Raises ValueError as
    :func:`confirmed`."""
    if is_current(record):
        return []
    found = confirmed(record, path)
    return [EARLIER if found is None else found.sentence]
