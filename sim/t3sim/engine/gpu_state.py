"""The state of one simulated GPU: what each of its models declares beside its code, in one bundle."""

from typing import ClassVar

import numpy as np

from t3sim.common.bundle import Bundle

from . import (
    channel,
    completion,
    compute,
    egress,
    front,
    gpu,
    link,
    llc,
    mover,
    nmc,
    requests,
    row_segments,
    state,
    wakes,
)
from .observed import contention, queues
from .t3unit import ports, unit, words

_OWNERS = (
    state, compute, llc, egress, requests, row_segments, wakes, front, channel, completion, nmc, mover, link, words,
    ports, unit, gpu, contention, queues,
)  # fmt: skip


class GpuState(Bundle):
    """One GPU. The first index of per-channel arrays is the channel; ``FIELDS`` of the models say what each field is.

    A model writes to its own fields, and to those of another only through a function of that, or where its text says
    so.
    """

    FIELDS: ClassVar[dict[str, tuple[np.dtype, int]]] = {
        name: field for owner in _OWNERS for name, field in owner.FIELDS.items()
    }
