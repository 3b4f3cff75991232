"""Whether a kept record is of today's simulator, and if not, whether that was seen to give the same."""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import Field
from t3sim.common.strict_record import StrictRecord
from t3sim.run.records import read_record
from t3sim.study.sources import Made, digest_for, is_current

CONFIRMED = "confirmed.json"
"""Beside a record that was confirmed."""
EARLIER = "**These results are from an earlier version of the simulator.**"
_SHARE = 0.1
"""Of the results, the tenth that the sentence supposes to have changed."""


class Confirmed(StrictRecord):
    """Results of a record that another simulator was seen to give again, number by number.

    ``record``: SHA-256 of the record's file; ``sources``: digest of the sources of that simulator; ``drawn`` of ``all``
    results, by ``seed``; ``what`` they are called.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    record: str
    sources: str
    what: str
    drawn: int
    all: int
    seed: int

    @property
    def sentence(self) -> str:
        """What a page says of it."""
        if self.drawn == self.all:
            return f"Today's gives the same for all of its {self.all} {self.what}."
        chance = 100 * (1 - (1 - _SHARE) ** self.drawn)
        return (
            f"Today's gives the same for {self.drawn} of its {self.all} {self.what}, drawn by chance: had one in ten "
            f"changed, {chance:.0f} % of such draws would show it."
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made_by(record: Made, path: Path) -> list[str]:
    """A sentence on a record, read from ``path``, whose simulator is not this tree's; else none. Raises ValueError if
    what was confirmed cannot be read."""
    if is_current(record):
        return []
    kept = path.with_name(CONFIRMED)
    if not kept.exists():
        return [EARLIER]
    confirmed = read_record(kept, Confirmed)
    holds = confirmed.record == digest_of(path) and confirmed.sources == digest_for(record.hardware)
    return [f"{EARLIER} {confirmed.sentence}" if holds else EARLIER]
