"""The configuration of the T3 hardware: one frozen object drives RTL, golden model and address arithmetic."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

NO_LIMIT = 127
"""Occupancy threshold that never holds communication back (occupancies are 7-bit)."""

DTYPES = ("fp16", "bf16", "fp32", "int32")
"""Data types that the NMC ALU can have, in the order of :class:`~t3hdl.interface.layouts.Dtype`."""


_SWEEP_ENDS = 8
"""Cycles of a sweep of the tracker's rows before the first and after the last row, rounded up."""


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class T3Config:
    """Every free choice of the hardware. Illegal combinations are refused here, before any signal exists.

    Parameters
    ----------
    slices : memory channels of one GPU, one ``MemorySlice`` each; a power of two, 1 to 64.
    node_inputs : radix of the first level of the token network; divides ``slices``, 1 to 16.
    ranges : output buffers that can be tracked at the same time, 1 to 4.
    contexts : jobs that can be armed at the same time, each with its own identity and quotas, 1 to 16.
    tracker_sets, tracker_ways : tile counters: sets x ways entries ([P]: 256 sets; 8 wavefronts a workgroup).
    tracker_banks : tokens counted per cycle; a power of two, at most ``tracker_sets``, 1 to 8.
    row_index_bits : bits of the set index that come from the tile row; the rest come from the tile column.
    descriptors : chunks that one armed output may have, 2 to 64.
    chunk_window : chunks that are live (matched, counted) at the same time, 2 to ``descriptors``.
    blocks : DMA blocks per chunk, a power of two, 1 to 64.
    wavefronts : wavefronts per workgroup, 1 to 16.
    tile_count_bits : width of a tile counter.
    chunk_count_bits : width of a chunk counter.
    token_queue : depth of a slice's token queue, 2 to 64.
    event_queue : depth of a tracker bank's event queue, 3 to 16; less would not let a token in every cycle.
    egress_ports : store rows (up to 256 bytes each) matched per cycle at the GPU's egress, 1 to 8.
    nmc_lanes : 16-bit lanes of the NMC ALU, 2, 4, 8 or 16; a 32-byte line passes it in 16 / ``nmc_lanes`` beats.
    nmc_latency : pipeline stages of the NMC ALU, 2 to 8.
    dtypes : data types that the NMC ALU adds and compares, a non-empty part of :data:`DTYPES` in its order.
    protect : SECDED on tables and parity on long-lived registers; an error that cannot be corrected poisons its chunk.
    count_on : "accepted" counts an update when the DRAM queue takes it, "performed" when the memory reports it done.

    Raises
    ------
    TypeError
        if a numeric parameter is not an int.
    ValueError
        if a value is out of range, or two values contradict each other; names parameter, rule and value.
    """

    slices: int = 64
    node_inputs: int = 8
    ranges: int = 2
    contexts: int = 4
    tracker_sets: int = 256
    tracker_ways: int = 8
    tracker_banks: int = 4
    row_index_bits: int = 3
    descriptors: int = 64
    chunk_window: int = 64
    blocks: int = 64
    wavefronts: int = 8
    tile_count_bits: int = 16
    chunk_count_bits: int = 32
    token_queue: int = 8
    event_queue: int = 4
    egress_ports: int = 4
    nmc_lanes: int = 16
    nmc_latency: int = 4
    dtypes: tuple[str, ...] = DTYPES
    protect: bool = False
    count_on: Literal["accepted", "performed"] = "accepted"

    def __post_init__(self) -> None:
        self._check_types()
        for name, low, high in (
            ("slices", 1, 64), ("node_inputs", 1, 16), ("ranges", 1, 4), ("contexts", 1, 16),
            ("tracker_sets", 1, 4096), ("tracker_ways", 1, 16), ("tracker_banks", 1, 8),
            ("descriptors", 2, 64), ("chunk_window", 2, 64),
            ("blocks", 1, 64), ("wavefronts", 1, 16), ("tile_count_bits", 4, 16), ("chunk_count_bits", 8, 32),
            ("token_queue", 2, 64), ("event_queue", 3, 16), ("egress_ports", 1, 8), ("nmc_lanes", 2, 16),
            ("nmc_latency", 2, 8),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} must be in {low} to {high}, not {value}")
        for name in ("slices", "tracker_sets", "tracker_banks", "blocks", "nmc_lanes"):
            value = getattr(self, name)
            if not _is_power_of_two(value):
                raise ValueError(f"{name} must be a power of two, not {value}")
        if self.slices % self.node_inputs:
            raise ValueError(f"node_inputs must divide slices ({self.slices}), not {self.node_inputs}")
        if self.slices // self.node_inputs > 16:
            raise ValueError(f"slices / node_inputs must be at most 16, not {self.slices} / {self.node_inputs}")
        if self.tracker_banks > self.tracker_sets:
            raise ValueError(
                f"tracker_banks must be at most tracker_sets ({self.tracker_sets}), not {self.tracker_banks}"
            )
        if not self.bank_bits <= self.row_index_bits <= self.set_bits:
            raise ValueError(
                f"row_index_bits must be in {self.bank_bits} (bank bits) to {self.set_bits} (set bits), "
                f"not {self.row_index_bits}"
            )
        if self.bank_bits > self.column_index_bits:
            raise ValueError(
                f"row_index_bits must leave {self.bank_bits} (bank bits) of {self.set_bits} set bits to the column, "
                f"not {self.row_index_bits}"
            )
        if self.stale_cycles > self.blocks + 12:
            raise ValueError(
                f"blocks must be at least {self.stale_cycles - 12}, so that the slot of a finished chunk is not in use "
                "again before its last events are counted, (event_queue + 2) x tracker_banks + 1 cycles; "
                f"not {self.blocks}"
            )
        if self.chunk_window > self.descriptors:
            raise ValueError(f"chunk_window must be at most descriptors ({self.descriptors}), not {self.chunk_window}")
        if self.count_on not in ("accepted", "performed"):
            raise ValueError(f"count_on must be 'accepted' or 'performed', not {self.count_on!r}")
        if not self.dtypes or self.dtypes != tuple(name for name in DTYPES if name in self.dtypes):
            raise ValueError(f"dtypes must be among {', '.join(DTYPES)}, each once, in this order, not {self.dtypes!r}")

    def _check_types(self) -> None:
        if isinstance(self.dtypes, list):  # as a TOML or JSON file gives it
            object.__setattr__(self, "dtypes", tuple(self.dtypes))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "protect":
                if not isinstance(value, bool):
                    raise TypeError(f"protect must be true or false, not {value!r}")
            elif field.name not in ("count_on", "dtypes") and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"{field.name} must be an int, not {value!r}")
        if not isinstance(self.dtypes, tuple):
            raise TypeError(f"dtypes must be a list of names, not {self.dtypes!r}")

    @property
    def set_bits(self) -> int:
        """Bits of the global set index (bank and set within the bank)."""
        return (self.tracker_sets - 1).bit_length()

    @property
    def bank_bits(self) -> int:
        """Bits that choose the tracker bank."""
        return (self.tracker_banks - 1).bit_length()

    @property
    def column_index_bits(self) -> int:
        """Bits of the set index that come from the tile column."""
        return self.set_bits - self.row_index_bits

    @property
    def sets_per_bank(self) -> int:
        """Rows of one bank's table."""
        return self.tracker_sets // self.tracker_banks

    @property
    def nodes(self) -> int:
        """First-level token merge nodes."""
        return self.slices // self.node_inputs

    @property
    def nmc_beats(self) -> int:
        """Cycles in which a line's sixteen 16-bit lanes enter the NMC ALU."""
        return 16 // self.nmc_lanes

    @property
    def stale_cycles(self) -> int:
        """Cycles after a slot became invalid in which all that was matched with it is counted.

        A bank holds two tokens in M and R and ``event_queue`` events (with the one in E). One event per cycle is
        drained in all, and counted in the next one. A chunk's slot is loaded again 12 + ``blocks`` cycles after its
        ``chunk_done`` at the earliest (docs/hardware/trigger.md).
        """
        return (self.event_queue + 2) * self.tracker_banks + 1

    @property
    def drain_cycles(self) -> int:
        """Cycles after an abort in which a token that a slice's token queue holds has certainly left the banks.

        The banks take nothing while the abort sweeps their rows. Else a bank takes a token at least every
        ``tracker_banks`` cycles (its event queue gets that share of the one event per cycle); a root input moves every
        ``nodes`` such turns, a leaf input every ``slices`` of them. The token and what is before it:
        ``token_queue`` + 2 places at the leaf's input, 4 at the root's, 8 behind it.
        """
        turns = (self.token_queue + 2) * self.slices + 4 * self.nodes + 8
        return turns * self.tracker_banks + self.sets_per_bank + _SWEEP_ENDS


PRESETS: dict[str, T3Config] = {
    "paper": T3Config(),
    "paper-fit": T3Config(tracker_sets=1024, row_index_bits=4),
    "small": T3Config(
        slices=4, node_inputs=2, ranges=2, contexts=2, tracker_sets=4, tracker_ways=2, tracker_banks=2,
        row_index_bits=1,
        descriptors=8, chunk_window=4, blocks=4, wavefronts=2, tile_count_bits=8, chunk_count_bits=16,
        egress_ports=1, nmc_latency=3,
    ),
    "fpga": T3Config(
        slices=4, node_inputs=4, ranges=2, contexts=2, tracker_sets=64, tracker_ways=4, descriptors=8, chunk_window=8,
        blocks=16, egress_ports=1, nmc_latency=6, dtypes=("fp16",),
    ),
    "fpga-all": T3Config(
        slices=1, node_inputs=1, ranges=2, contexts=2, tracker_sets=64, tracker_ways=4, descriptors=8, chunk_window=8,
        blocks=16, egress_ports=1, nmc_latency=6,
    ),
    "fpga-hx8k": T3Config(
        slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=32, tracker_ways=1, tracker_banks=1, descriptors=4,
        chunk_window=3, blocks=4, wavefronts=1, tile_count_bits=8, chunk_count_bits=12, token_queue=2, event_queue=3,
        egress_ports=1, nmc_lanes=2, nmc_latency=6, dtypes=("fp16",),
    ),
    "fpga-up5k": T3Config(
        slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=32, tracker_ways=2, tracker_banks=1, descriptors=4,
        chunk_window=4, blocks=4, wavefronts=2, tile_count_bits=8, chunk_count_bits=12, token_queue=2, event_queue=3,
        egress_ports=1, nmc_latency=6, dtypes=("fp16",),
    ),
}  # fmt: skip
"""``paper`` (256 x 8 [P]), ``paper-fit`` (no overflow), ``small`` (tests, proofs). For boards: ``fpga``, ``fpga-all``
(every data type, one slice), ``fpga-hx8k`` (on iCE40HX8K tracker and trigger alone), ``fpga-up5k`` (on iCE40UP5K the
tracker alone)."""


def preset(name: str, **overrides: Any) -> T3Config:
    """The preset ``name`` with the fields in ``overrides`` replaced.

    Raises ValueError for an unknown preset or parameter, naming the legal ones.
    """
    if name not in PRESETS:
        raise ValueError(f"hardware preset must be one of {', '.join(PRESETS)}, not {name!r}")
    known = {field.name for field in fields(T3Config)}
    for key in overrides:
        if key not in known:
            raise ValueError(f"hardware parameter must be one of {', '.join(sorted(known))}, not {key!r}")
    return replace(PRESETS[name], **overrides)
