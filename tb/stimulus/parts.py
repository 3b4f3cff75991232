"""Which random inputs each kind of part gets: what a legal neighbour might do."""

from tb.stimulus.matcher import Matcher
from tb.stimulus.monitor import Monitor
from tb.stimulus.nmc import Nmc
from tb.stimulus.node import Node
from tb.stimulus.registers import Registers
from tb.stimulus.slice import Slice
from tb.stimulus.tracker import Tracker
from tb.stimulus.trigger import Trigger

STIMULI = {
    "slice": Slice, "matcher": Matcher, "leaf": Node, "root": Node, "tracker": Tracker, "trigger": Trigger,
    "monitor": Monitor, "registers": Registers, "nmc": Nmc,
}  # fmt: skip
"""The stimulus of each part of a :class:`~t3sim.hardware.abi.LoadedHardware`, by the part's name."""
