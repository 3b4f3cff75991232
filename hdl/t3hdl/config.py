"""The configuration of the T3 hardware: one frozen object drives RTL, golden model and address arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from .parameter import Parameter, choice, count, parameters

NO_LIMIT = 127
"""Occupancy threshold that never holds communication back (occupancies are 7-bit)."""

DTYPES = ("fp16", "bf16", "fp32", "int32")
"""Data types that the NMC ALU can have, in the order of :class:`~t3hdl.interface.layouts.Dtype`."""


_MARK_WORD_BITS = 6
"""log2 of the tile marks that are read, written and cleared at once."""
_TOKEN_LINES = 1023
"""Lines of a token at most."""
_SWEEP_ENDS = 8
"""Cycles of a sweep of the tracker's rows before the first and after the last row, rounded up."""


@dataclass(frozen=True, kw_only=True)
class T3Config:
    """Every free choice of the hardware; what each means, and which values it may have, is in :data:`PARAMETERS`.

    Illegal combinations are refused here, before any signal exists.

    Raises
    ------
    TypeError
        if a numeric parameter is not an int.
    ValueError
        if a value is out of range, or two values contradict each other; names parameter, rule and value.
    """

    slices: int = count(64, 1, 64, "channels", "memory channels of one GPU, one memory slice each", power_of_two=True)
    node_inputs: int = count(8, 1, 16, "inputs", "radix of the token network's first level; divides `slices`")
    leaf_outputs: int = count(
        4, 1, 8, "outputs",
        "outputs of a node of the token network's first level, each to a root of its own; as many as `tracker_banks` "
        "if those are fewer",
        power_of_two=True,
    )  # fmt: skip
    ranges: int = count(2, 1, 4, "ranges", "output buffers that can be tracked at the same time")
    contexts: int = count(
        4, 1, 16, "contexts", "jobs that can be armed at the same time, each with its own identity and quotas"
    )
    tracker_sets: int = count(
        256, 1, 4096, "sets", "sets of tile counters; [P]: 256, for as many workgroups", power_of_two=True
    )
    tracker_ways: int = count(8, 1, 16, "ways", "tile counters of a set; [P]: 8, for the wavefronts of a workgroup")
    tracker_banks: int = count(
        8, 1, 8, "banks", "banks of the tracker, each of which counts a token per cycle; at most `tracker_sets`",
        power_of_two=True,
    )  # fmt: skip
    row_index_bits: int = count(
        3, 0, 12, "bits",
        "bits of a set's index that come from the tile row, the rest from the tile column; of each as many as choose "
        "the bank, or more",
    )  # fmt: skip
    descriptors: int = count(64, 2, 64, "chunks", "chunks that one armed output may have")
    chunk_window: int = count(
        64, 2, 64, "chunks", "chunks that are live (matched, counted) at the same time; at most `descriptors`"
    )
    blocks: int = count(64, 1, 64, "blocks", "DMA blocks of a chunk", power_of_two=True)
    tile_marks: int = count(
        16384, 2, 1 << 20, "workgroup tiles",
        "tiles of live chunks of which the trigger remembers which wavefront tiles were complete; shared evenly by the "
        "slots of `chunk_window`, so at least as many",
        power_of_two=True,
    )  # fmt: skip
    wavefronts: int = count(8, 1, 16, "wavefronts", "wavefronts of a workgroup")
    tile_count_bits: int = count(16, 4, 16, "bits", "width of a tile counter")
    chunk_count_bits: int = count(32, 8, 32, "bits", "width of a chunk counter")
    token_queue: int = count(8, 2, 64, "tokens", "depth of a slice's token queue")
    event_queue: int = count(
        4, 3, 16, "events", "depth of a tracker bank's queue of finished tiles; less would not let one in every cycle"
    )
    egress_ports: int = count(
        4, 1, 8, "bursts/cycle", "bursts of stores, each a row of a tile or a part of one, that are matched per cycle"
    )
    nmc_lanes: int = count(
        16, 2, 16, "lanes", "16-bit lanes of the NMC ALU, which a line passes in 16 / `nmc_lanes` beats",
        power_of_two=True,
    )  # fmt: skip
    nmc_latency: int = count(6, 2, 8, "cycles", "pipeline stages of the NMC ALU")
    dtypes: tuple[str, ...] = choice(
        DTYPES, DTYPES, "data types that the NMC ALU adds and compares: a list of one or more, in this order"
    )
    protect: bool = choice(
        False,
        (),
        "SECDED on tables, parity on registers; what is not corrected is reported, and poisons chunks it may concern",
    )
    count_on: Literal["accepted", "performed"] = choice(
        "accepted",
        ("accepted", "performed"),
        "whether an update counts when the DRAM queue takes it, or when the memory reports it done",
    )

    def __post_init__(self) -> None:
        self._check_types()
        for name, parameter in PARAMETERS.items():
            parameter.check(name, getattr(self, name))
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
                f"blocks must be at least {1 << (self.stale_cycles - 13).bit_length()}, so that the slot of a finished "
                "chunk is not in use again before its last events are counted: blocks + 12 cycles must be at least "
                f"(event_queue + 2) x (tracker_banks + 1) + 1 = {self.stale_cycles}; not {self.blocks}"
            )
        if self.chunk_window > self.descriptors:
            raise ValueError(f"chunk_window must be at most descriptors ({self.descriptors}), not {self.chunk_window}")
        if self.share_bits < 0:
            raise ValueError(f"tile_marks must be at least chunk_window ({self.chunk_window}), not {self.tile_marks}")
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
            raise TypeError(f'dtypes must be a list of names, such as ["fp16","int32"], not {self.dtypes!r}')

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
    def roots(self) -> int:
        """Second-level token nodes, each of which takes one output of every first-level node."""
        return min(self.leaf_outputs, self.tracker_banks)

    @property
    def root_outputs(self) -> int:
        """Banks that one root of the token network feeds."""
        return self.tracker_banks // self.roots

    @property
    def nmc_beats(self) -> int:
        """Cycles in which a line's sixteen 16-bit lanes enter the NMC ALU."""
        return 16 // self.nmc_lanes

    @property
    def slot_bits(self) -> int:
        """Bits of the number of a slot of the chunk window."""
        return (self.chunk_window - 1).bit_length()

    @property
    def share_bits(self) -> int:
        """log2 of the workgroup tiles that a slot has marks for, while every slot may hold a chunk."""
        return self.tile_marks.bit_length() - 1 - self.slot_bits

    @property
    def wavefront_bits(self) -> int:
        """Bits of the number of a wavefront."""
        return (self.wavefronts - 1).bit_length()

    @property
    def word_tile_bits(self) -> int:
        """log2 of the workgroup tiles whose marks are in one word: at most 64 marks, and those of one slot."""
        return min(self.share_bits, _MARK_WORD_BITS - self.wavefront_bits)

    @property
    def mark_words(self) -> int:
        """Words of tile marks, all slots."""
        return self.tile_marks >> self.word_tile_bits

    @property
    def walk_bits(self) -> int:
        """Bits of a number that the trigger's walker counts: of a block, or of a word of tile marks."""
        return max(6, (self.mark_words - 1).bit_length())

    @property
    def stale_cycles(self) -> int:
        """Cycles after a slot became invalid in which all that was matched with it is counted.

        A bank holds two tokens in M and R and ``event_queue`` finished tiles (with the one in E), and has its turn once
        in ``drain_turns`` cycles; what is drained is counted in the next one. (Lines without an entry are dropped when
        the slot becomes invalid.) A chunk's slot is loaded again 12 + ``blocks`` cycles after its ``chunk_done`` at the
        earliest (docs/hardware/trigger.md).
        """
        return (self.event_queue + 2) * self.drain_turns + 1

    @property
    def drain_turns(self) -> int:
        """Who take turns in having an event counted: the banks, and the lines without an entry of all of them."""
        return self.tracker_banks + 1

    @property
    def pending_bits(self) -> int:
        """Bits of a sum of lines without an entry, of a bank and a slot.

        Each slot of the window and each of ``drain_turns`` may have its turn before it is counted; a token brings 1023
        lines at most.
        """
        return (_TOKEN_LINES * ((self.chunk_window + 1) * self.drain_turns + 1)).bit_length()

    @property
    def open_tile_bits(self) -> int:
        """Bits of the number of a chunk's tiles that have an entry: it may be all entries."""
        return (self.tracker_sets * self.tracker_ways).bit_length()

    @property
    def drain_cycles(self) -> int:
        """Cycles after an abort in which a token that a slice's token queue holds has certainly left the banks.

        The banks take nothing while the abort sweeps their rows. Else a bank takes a token at least every
        ``drain_turns`` cycles (its event queue gets that share of the one event per cycle); a root input moves every
        ``nodes`` such turns, a leaf input every ``slices`` of them. The token and what is before it:
        ``token_queue`` + 2 places at the leaf's input, 4 at the root's, 8 behind it. Each step is proven, and the sum
        of them is made in docs/hardware/tracker.md.
        """
        turns = (self.token_queue + 2) * self.slices + 4 * self.nodes + 8
        return turns * self.drain_turns + self.sets_per_bank + _SWEEP_ENDS


PARAMETERS: Mapping[str, Parameter] = parameters(T3Config)
"""What is said of each parameter."""

PRESETS: dict[str, T3Config] = {
    "paper": T3Config(),
    "paper-fit": T3Config(tracker_sets=1024, row_index_bits=4),
    "small": T3Config(
        slices=4, node_inputs=2, leaf_outputs=2, ranges=2, contexts=2, tracker_sets=4, tracker_ways=2, tracker_banks=2,
        row_index_bits=1, event_queue=3,
        descriptors=8, chunk_window=4, blocks=4, tile_marks=64, wavefronts=2, tile_count_bits=8, chunk_count_bits=16,
        egress_ports=1, nmc_latency=3,
    ),
    "fpga": T3Config(
        slices=4, node_inputs=4, leaf_outputs=1, ranges=2, contexts=2, tracker_sets=64, tracker_ways=4,
        tracker_banks=4, event_queue=3, descriptors=8, chunk_window=8, blocks=16, tile_marks=1024, egress_ports=1,
        dtypes=("fp16",),
    ),
    "fpga-all": T3Config(
        slices=1, node_inputs=1, leaf_outputs=1, ranges=2, contexts=2, tracker_sets=64, tracker_ways=4,
        tracker_banks=4, event_queue=3, descriptors=8, chunk_window=8, blocks=16, tile_marks=1024, egress_ports=1,
    ),
    "fpga-hx8k": T3Config(
        slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=32, tracker_ways=1, tracker_banks=1, descriptors=4,
        chunk_window=3, blocks=4, tile_marks=64, wavefronts=1, tile_count_bits=8, chunk_count_bits=12, token_queue=2,
        event_queue=3, egress_ports=1, nmc_lanes=2, dtypes=("fp16",),
    ),
    "fpga-up5k": T3Config(
        slices=1, node_inputs=1, ranges=1, contexts=1, tracker_sets=32, tracker_ways=2, tracker_banks=1, descriptors=4,
        chunk_window=4, blocks=4, tile_marks=64, wavefronts=2, tile_count_bits=8, chunk_count_bits=12, token_queue=2,
        event_queue=3, egress_ports=1, dtypes=("fp16",),
    ),
}  # fmt: skip
"""Parameters by name, for the uses in :data:`PRESET_USES`."""
PRESET_USES: Mapping[str, str] = {
    "paper": "the paper's machine, with a tracker of 256 sets of 8 entries [P]",
    "paper-fit": "the same with a larger tracker that does not overflow, to see what overflow costs",
    "small": "few channels and entries, for quick simulations and for proofs; the machine `toy` has it",
    "fpga": "FPGA boards, four channels, FP16 alone",
    "fpga-all": "FPGA boards, one channel, every data type",
    "fpga-hx8k": "ULX3S, with tracker and trigger alone: what a small FPGA would hold",
    "fpga-up5k": "the iCE40 boards: the tracker, which is all that fits",
}
"""What each preset is for."""


def preset(name: str, **overrides: Any) -> T3Config:
    """The preset ``name`` with the fields in ``overrides`` replaced.

    Raises ValueError for an unknown preset or parameter, naming the legal ones.
    """
    if name not in PRESETS:
        raise ValueError(f"hardware preset must be one of {', '.join(PRESETS)}, not {name!r}")
    for key in overrides:
        if key not in PARAMETERS:
            raise ValueError(f"hardware parameter must be one of {', '.join(sorted(PARAMETERS))}, not {key!r}")
    return replace(PRESETS[name], **overrides)
