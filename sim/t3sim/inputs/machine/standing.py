"""What kind of machine it is: its peak rates, and what its results can be checked with, by the marks of its sources.

A source that begins with ``[S]`` is a public specification of a product. No result of T3 was published for such a
machine, so a simulation of it is a forecast that nothing confirms, also in a user's file that has it as its base.
"""

from t3hdl.interface.layouts import LINE_BYTES

from .machine import Machine

SPECIFICATION = "[S]"
"""Begins the source of a value from a product's specification."""
_TOY = "[A] toy"


def is_unvalidated(machine: Machine) -> bool:
    """Whether a value is from a product's specification."""
    return any(source.startswith(SPECIFICATION) for source in machine.sources.values())


def standing(machine: Machine) -> str:
    """In a few words: ``unvalidated``, ``toy``, or what its results can be compared with."""
    if is_unvalidated(machine):
        return "unvalidated"
    if any(source.startswith(_TOY) for source in machine.sources.values()):
        return "toy"
    return "T3 paper" if machine.sources["gpu.cus"].startswith("[P]") else "unvalidated"


def matrix_tflop_s(machine: Machine) -> float:
    """Peak rate of all matrix units."""
    gpu = machine.gpu
    return gpu.cus * gpu.clock_mhz * gpu.flop_per_clock_per_cu / 1e6


def bandwidth_gb_s(machine: Machine) -> float:
    """Peak bandwidth of all data buses: a line takes nBL clocks."""
    hbm = machine.hbm
    return hbm.channels * LINE_BYTES / hbm.nBL * hbm.clock_mhz / 1000


def caution(machine: Machine, name: str = "") -> list[str]:
    """What a reader of the machine's results must know; nothing for the paper's machine and the toy. ``name``: what the
    results call it, where that is not its own."""
    if not is_unvalidated(machine):
        return []
    named = name or machine.name
    text = "has a product's public figures in models of the paper's machine, and no published result to check it with"
    remedy = "on such a GPU `t3 validate gpu --machine` times its GEMMs beside the model's"
    return [f"unvalidated machine: {named} {text}; {remedy}"]
