"""The sections of a machine besides GPU, memory and T3 hardware: every number, named, with its unit.

The models below hold names, units and limits but no defaults: a number comes from a preset in ``presets/`` or from a
user's file, so that nothing about a machine hides in code.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import LINE_BYTES

from .gpu import STORE_ROW_BYTES
from .section import (
    CLOCK_SCALE,
    GB_S,
    MAX_HEADER_BYTES,
    MAX_KIB,
    MAX_NS,
    MAX_SKEW_NS,
    Section,
    choice,
    quantity,
)


class FabricSection(Section):
    """Crossbar between the CUs with their LLC and the memory controllers."""

    request_ns: int = quantity("ns", "latency of a request, from the CU to the memory controller", ge=0, le=MAX_NS)
    response_ns: int = quantity("ns", "latency of a response", ge=0, le=MAX_NS)


class LinkSection(Section):
    """One direction of the ring link between two neighbours."""

    gb_s: float = quantity("GB/s", "bandwidth, in 10^9 bytes/s", ge=GB_S[0], le=GB_S[1])
    latency_ns: int = quantity("ns", "latency from sender to receiver", ge=1, le=MAX_NS)
    header_bytes: int = quantity(
        "bytes/packet",
        "header of a packet, which carries up to 256 bytes of one output row",
        ge=0,
        le=MAX_HEADER_BYTES,
    )
    egress_buffer_kib: int = quantity("KiB", "buffer of remote stores before the link", ge=1, le=MAX_KIB)
    rx_buffer_kib: int = quantity("KiB", "buffer of the receiver, which returns credits", ge=1, le=MAX_KIB)
    retry: bool = choice(
        "go-back-N retransmission: packets have numbers and are sent again until acknowledged; not in mirror mode"
    )
    retry_timeout_ns: int = quantity(
        "ns", "silence of the receiver after which packets are sent again; above a round trip", ge=1, le=4 * MAX_NS
    )

    @model_validator(mode="after")
    def _timeout_is_long_enough(self) -> Self:
        if self.retry and self.retry_timeout_ns <= 2 * self.latency_ns:
            raise ValueError(
                f"link.retry_timeout_ns must be above a round trip, {2 * self.latency_ns} ns, not "
                f"{self.retry_timeout_ns}"
            )
        return self

    @property
    def receive_lines(self) -> int:
        """Room of the receiver's buffer, in lines."""
        return self.rx_buffer_kib * 1024 // LINE_BYTES


class DmaSection(Section):
    """The DMA engine that the trigger commands; rates are per memory clock."""

    buffer_kib: int = quantity("KiB", "buffer for data that is read and not yet sent", ge=1, le=MAX_KIB)
    lines_per_cycle: int = quantity("lines/clock", "reads per memory clock", ge=1, le=1024)
    block: Literal["tile", "column", "chunk"] = choice(
        "data of one DMA command: a `tile`, a `column` of tiles of a chunk, a `chunk`; "
        "more tiles if the hardware has too few blocks"
    )


class KernelSection(Section):
    """The reduce-scatter and all-gather kernels, which run on some of the CUs."""

    cus: int = quantity("CUs", "CUs on which the kernels run, at most `gpu.cus`", ge=1, le=1024)
    bytes_per_clock_per_cu: int = quantity("bytes/clock/CU", "reads of one CU, per CU clock", ge=1, le=1 << 16)
    outstanding_lines_per_cu: int = quantity(
        "lines/CU",
        "lines in flight of one CU, from the read until they are sent",
        ge=STORE_ROW_BYTES // LINE_BYTES,
        le=1 << 16,
    )
    step_overhead_ns: int = quantity(
        "ns",
        "overhead before each chunk that the kernel sends, or sub-chunk if the ring is pipelined",
        ge=0,
        le=MAX_NS,
    )
    slice_kib: int = quantity(
        "KiB",
        "what `sequential-pipelined` forwards at a time: whole tiles, whole rows of tiles if a row has no more",
        ge=1,
        le=MAX_KIB,
    )


class ArbiterSection(Section):
    """Communication-aware arbiter (policy `t3-mca`).

    A threshold is the occupancy of the DRAM queue, in lines, from which communication waits; 127 is no limit. With
    `paper`, the data-bus use of the GEMM's first stage chooses one of four. With `backlog` there is one, and the
    arbiter is round-robin, with no threshold, while communication is *behind*: it has many DMA blocks to send, or some
    for long. How late a chunk may be is predicted: (time of the GEMM - time of the link for a collective) / GPUs.
    """

    mca: Literal["backlog", "paper"] = choice(
        "`paper`: compute first, and communication below the threshold or after its longest wait; `backlog`: the same "
        "with one threshold, but round-robin while communication is behind, and for the whole run with two GPUs, or "
        "unless the link is predicted to finish the reduce-scatter before the GEMM ends, by the time that "
        "`backlog_patience_ns` = 0 stands for, or more"
    )
    backlog_blocks: int = quantity(
        "DMA blocks",
        "with `backlog`: DMA blocks, ready to be sent or being sent, from which communication is behind; 0: as many as "
        "a stage of workgroups makes, or as the link sends in the time by which a chunk may be late, if that is more",
        ge=0,
        le=65535,
    )
    backlog_patience_ns: int = quantity(
        "ns",
        "with `backlog`: time in which there are DMA blocks to send without a break, after which communication is "
        "behind until there are none; 0: half of the time by which a chunk may be late, or twice the time of the link "
        "for what a stage of workgroups stores, if that is more",
        ge=0,
        le=MAX_NS,
    )
    backlog_threshold: int = quantity(
        "lines", "with `backlog`: threshold while communication is not behind", ge=0, le=NO_LIMIT
    )
    backlog_turns_percent: int = quantity(
        "%",
        "with `backlog`: data-bus use of the GEMM's first stage from which the arbiter is round-robin after that "
        "stage, as the GEMM leaves communication too little of the memory; rounded up to where the hardware's classes "
        "begin, which is 25, 50 and 75; above 75: never",
        ge=25,
        le=100,
    )
    backlog_wait_cycles: int = quantity(
        "clocks",
        "with `backlog`: longest wait of communication, in memory clocks, while it is not behind",
        ge=1,
        le=65535,
    )
    backlog_quiet_lines: int = quantity(
        "lines",
        "with `backlog`: lines of communication that a channel takes with none of compute between them, after which "
        "the threshold does not hold there until the next of compute; 0: it always holds",
        ge=0,
        le=255,
    )
    starvation_cycles: int = quantity("clocks", "with `paper`: longest wait of communication", ge=1, le=65535)
    starvation_quantum: int = quantity("lines", "communication lines that are then served", ge=1, le=255)
    threshold_under_25: int = quantity("lines", "threshold for a data-bus use under 25 %", ge=0, le=NO_LIMIT)
    threshold_under_50: int = quantity("lines", "threshold for 25 to 50 %", ge=0, le=NO_LIMIT)
    threshold_under_75: int = quantity("lines", "threshold for 50 to 75 %", ge=0, le=NO_LIMIT)
    threshold_above: int = quantity("lines", "threshold for 75 % and more", ge=0, le=NO_LIMIT)


class VariationSection(Section):
    """Differences between GPUs, one value per GPU; an empty list means that all are alike."""

    start_skew_ns: tuple[Annotated[float, Field(ge=0, le=MAX_SKEW_NS)], ...] = quantity(
        "ns", "delay of the start of the GEMM"
    )
    clock_scale: tuple[Annotated[float, Field(ge=CLOCK_SCALE[0], le=CLOCK_SCALE[1])], ...] = quantity(
        "factor", "factor of `gpu.clock_mhz`"
    )
    link_gb_s: tuple[Annotated[float, Field(ge=GB_S[0], le=GB_S[1])], ...] = quantity(
        "GB/s", "bandwidth of the link on which the GPU sends, instead of `link.gb_s`"
    )
