"""Which random inputs each kind of part gets: what a legal neighbour might do."""

from stimulus_matcher import Matcher
from stimulus_monitor import Monitor
from stimulus_nmc import Nmc
from stimulus_node import Node
from stimulus_registers import Registers
from stimulus_slice import Slice
from stimulus_tracker import Tracker
from stimulus_trigger import Trigger

STIMULI = {
    "slice": Slice, "matcher": Matcher, "leaf": Node, "root": Node, "tracker": Tracker, "trigger": Trigger,
    "monitor": Monitor, "registers": Registers, "nmc": Nmc,
}  # fmt: skip
"""The stimulus of each part of a :class:`~t3sim.hardware.abi.Hardware`, by the part's name."""
