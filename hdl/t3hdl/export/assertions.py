"""SystemVerilog assertions on a part's ports, in a file that binds itself to the part's Verilog.

The rules are in ``sva/*.sv``, written by hand. What depends on the configuration is made here: the package of
:mod:`t3hdl.export.sva_package`, and for each part a module that connects the rules with its ports. Assumptions about
the surroundings are ``assume``, guarantees of the hardware ``assert``; a simulator checks both. Every part is held to
the rules of streams and of ``idle``; core and unit also to the invariants of the proofs.
"""

import re
from importlib.resources import files
from typing import Any

from amaranth.lib.wiring import Component

from ..config import T3Config
from ..core import T3Core
from ..interface.layouts import MAX_CONTEXTS, NEVER, TIME_BITS, ConfigWrite, ContextStatus
from ..interface.signatures import AXI
from ..unit import T3Unit
from .module_ports import Port, module_ports, module_streams, pulses
from .sva_package import package

FILE = "t3_assertions.sv"
RULES = ("ports.sv", "slice.sv", "registers.sv", "commands.sv")

_WAIVERS = {
    "DECLFILENAME": "one file holds all rules",
    "UNUSEDSIGNAL": "words have more fields than a rule looks at",
    "UNUSEDPARAM": "the package has what all rules need together",
    "CMPCONST": "a configuration may fill the range of a field",
    "UNSIGNED": "a register may lie at address zero",
    "WIDTHEXPAND": "operands are unsigned",
    "WIDTHTRUNC": "indices are in range",
    "BLKSEQ": "the rules of commands keep their books in one procedure, in order",
}
"""Lint warnings of the rules, and why each is harmless."""

_HEADER = """\
// Assertions on the T3 hardware's ports, which bind themselves to its modules. What must hold, and where it is held:
//   no command too early                              command_after_tiles, command_after_chunk
//   one command per block, no count lost or doubled   command_once, updates_not_lost, updates_not_doubled
//   foreign, stale, unmatched accesses change nothing slice_tracks_own_range_only, slice_refuses_*
//   no job begins before the last one has ended       configuration_arm_of_active, slices_are_pending
//   idle means that nothing changes                   idle_changes_nothing
//   threshold and starvation limit                    slice_threshold, slice_starvation_limit
//   AXI4-Lite, streams, locked configuration          axi_*, stream_*, configuration_*
// What is assumed of the surroundings: stream_input_held, time_counts_every_cycle, reads_in_a_block,
// memory_reports_its_updates, dma_reports_its_commands. Not seen at these ports: how soon a command comes, the
// memory's contents and order.
"""

_BUS = (
    "bus_valid", "bus_ready", "bus_write", "bus_privileged", "bus_address", "bus_data",
    "response_valid", "response_error", "response_data", "config_valid", "maintenance", "abort_busy", "pending",
)  # fmt: skip
_DROPPED = ("token", "command")
"""How the names of streams begin of which a disarm drops what waits."""
_SLICE_STREAMS = ("compute_read", "compute_write", "comm_read", "comm_write", "dram")


def assertions(config: T3Config, modules: dict[str, Component], prefix: str = "") -> str:
    """The text of :data:`FILE` for the modules of this configuration, by name. A crossing has no rules of its own.

    Rules and package get the ``prefix`` that the modules' names have already: they depend on the configuration, too.
    """
    parts = [_HEADER]
    parts += [f"/* verilator lint_off {rule} */  // {reason}\n" for rule, reason in _WAIVERS.items()]
    parts.append(package(config))
    folder = files(__package__) / "sva"
    parts += [(folder / name).read_text() for name in RULES]
    parts += [_checker(config, name, part) for name, part in modules.items() if hasattr(part, "idle")]
    return re.sub(r"\bt3_(words|\w+_rules)\b", rf"{prefix}t3_\1", "\n".join(parts))


def _checker(config: T3Config, name: str, component: Component) -> str:
    """The module that connects the rules to the ports of one module, and its bind."""
    ports = module_ports(component)
    top = isinstance(component, T3Core | T3Unit)
    probes = _probes(config, "core.registers" if isinstance(component, T3Unit) else "registers") if top else {}
    declared = ["input wire clk", "input wire rst"]
    declared += [f"input wire {_range(port.bits)}{_escaped(port.name)}" for port in ports]
    declared += [f"input wire {_range(bits)}probe_{probe}" for probe, (bits, _) in probes.items()]
    body = [*_streams(ports, top), _idle(ports)]
    if isinstance(component, T3Unit):
        body.append(_instance("t3_axi_lite_rules", "axi", {port.removeprefix("axi_"): port for port in AXI}))
    if top:
        body += _core_rules(config)
    connections = [".*", *(f".probe_{probe}({path})" for probe, (_, path) in probes.items())]
    return (
        f"module {name}_assertions (\n    " + ",\n    ".join(declared) + "\n);\n" + "".join(body) + "endmodule\n"
        f"bind {name} {name}_assertions rules ({', '.join(connections)});\n"
    )


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""


def _escaped(name: str) -> str:
    """``config`` is a keyword."""
    return f"\\{name} " if name == "config" else name


def _instance(rules: str, name: str, connections: dict[str, str], **parameters: int) -> str:
    """An instance of a rule module; clock and reset are always connected."""
    values = ", ".join(f".{key}({value})" for key, value in parameters.items())
    wires = "".join(f",\n      .{key}({value})" for key, value in connections.items())
    return f"  {rules}{f' #({values})' if values else ''} {name} (\n      .clk(clk), .rst(rst){wires}\n  );\n"


def _probes(config: T3Config, registers: str) -> dict[str, tuple[int, str]]:
    """Width and path of the wires that the rules of core and unit look at inside: of the registers and the monitor."""
    probes = {name: (64 if name.endswith("data") else 16 if name.endswith("address") else 1) for name in _BUS}
    probes |= {"unmatched": 1, "updates": 48, "pending": MAX_CONTEXTS}
    paths = {name: (bits, f"{registers}.{name}") for name, bits in probes.items()}
    paths["config_write"] = (ConfigWrite.size, f"{registers}.\\config ")
    paths["behind"] = (1, f"{registers.removesuffix('registers')}monitor.behind")
    for context in range(config.contexts):
        paths[f"context_{context}"] = (ContextStatus.size, f"{registers}.context__{context}")
    return paths


def _streams(ports: list[Port], top: bool) -> list[str]:
    """The rules of every stream; a disarm drops the tokens and commands that wait in the part."""
    names = {port.name for port in ports}
    drop = "1'b0"
    if top:
        drop = "disarm"
    elif "config_valid" in names:
        drop = "(config_valid && \\config [15:0] == t3_words::CONTROL && \\config [17])"
    return [
        _instance(
            "t3_stream_rules",
            f"stream_{stream.name}",
            {
                "drop": drop if stream.name.startswith(_DROPPED) and not stream.is_input else "1'b0",
                "valid": stream.valid.name,
                "ready": stream.ready.name,
                "payload": stream.payload.name,
            },
            BITS=stream.payload.bits,
            INPUT=int(stream.is_input),
        )
        for stream in module_streams(ports)
    ]


def _idle(ports: list[Port]) -> str:
    """What ``idle`` promises; the time is the one input that may change."""
    inputs = [port for port in ports if port.is_input and port.name != "now"]
    outputs = [port for port in ports if not port.is_input]
    names = {port.name for port in ports}
    moving = [f"{stream.valid.name} && {stream.ready.name}" for stream in module_streams(ports)]
    moving += [port.name for port in pulses(ports).values() if port.is_input]
    moving += [
        f"{name} && {name.removesuffix('valid')}ready" for name in AXI if name.endswith("valid") and name in names
    ]
    if "bus_valid" in names:
        moving.append("bus_valid && bus_ready")
    now = "now" if "now" in names else f"{TIME_BITS}'d0"
    return _instance(
        "t3_idle_rules",
        "idle_rules",
        {
            "idle": "idle",
            "wake": f"{now} >= wake_at && wake_at != {TIME_BITS}'h{NEVER:x}",
            "moving": " || ".join(moving) or "1'b0",
            "inputs": _packed(inputs),
            "outputs": _packed(outputs),
        },
        INPUT_BITS=sum(port.bits for port in inputs),
        OUTPUT_BITS=sum(port.bits for port in outputs),
    )


def _packed(ports: list[Port]) -> str:
    return "{" + ", ".join(_escaped(port.name) for port in ports) + "}"


def _core_rules(config: T3Config) -> list[str]:
    """The rules of registers, slices and commands, and the wires between them."""
    slices = range(config.slices)
    counted = "dram" if config.count_on == "accepted" else "update_done"
    lines = [_WIRES]
    lines += [f"  assign contexts[{c}] = probe_context_{c};\n" for c in range(config.contexts)]
    for s in slices:
        when = f"dram__{s}__valid && dram__{s}__ready" if counted == "dram" else f"update_done_valid__{s}"
        item = f"dram__{s}__payload" if counted == "dram" else f"update_done__{s}"
        lines.append(
            f"  assign counted[{s}] = {item};\n  assign counted_valid[{s}] = {when} && counted[{s}].tagged_;\n"
        )
    bus = {name: f"probe_{name}" for name in (*_BUS, "config_write")}
    shadow = (
        "disarm", "arm", "abort", "control", "arbiter", "arbiter_written", "ranges", "descriptors", "profile", "quotas",
    )  # fmt: skip
    lines.append(_instance("t3_register_rules", "registers", {**bus, **_same("contexts", "slices_pending", *shadow)}))
    either = " | ".join(f"slice_pending[{s}]" for s in slices)
    lines.append(f"  assign slices_pending = {either};\n")
    for s in slices:
        streams: dict[str, str] = {}
        for name in _SLICE_STREAMS:
            port = f"{name}__{s}"
            streams |= {f"{name}_valid": f"{port}__valid", f"{name}_ready": f"{port}__ready", name: f"{port}__payload"}
        for name in ("compute_refused", "comm_refused", "compute_stale", "comm_stale", "update_done"):
            streams |= {f"{name}_valid": f"{name}_valid__{s}", name: f"{name}__{s}"}
        shared = _same("arbiter", "arbiter_written", "ranges", "threshold", "now")
        own = {"occupancy": f"occupancy__{s}", "pending": f"slice_pending[{s}]", "behind": "probe_behind"}
        lines.append(_instance("t3_slice_rules", f"slice_{s}", {**shared, **own, **streams}))
    command: dict[str, Any] = {f"command_{name}": f"command__{name}" for name in ("valid", "ready")}
    command |= {"command": "command__payload", "unmatched": "probe_unmatched", "updates": "probe_updates"}
    command |= _same("command_done_valid", "command_done", "idle", "counted_valid", "counted")
    command |= _same("disarm", "arm", "abort", "control", "descriptors", "profile", "quotas")
    lines.append(_instance("t3_command_rules", "commands", command))
    return lines


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_WIRES = """\
  import t3_words::*;
  wire disarm, arm, abort, arbiter_written;
  control_t control;
  arbiter_t arbiter;
  range_t ranges[RANGES];
  logic [63:0] descriptors[DESCRIPTORS][DESCRIPTOR_WORDS];
  logic [15:0] profile[64];
  quota_t quotas[CONTEXTS];
  context_status_t contexts[CONTEXTS];
  wire [CONTEXTS-1:0] slices_pending;
  wire [CONTEXTS-1:0] slice_pending[SLICES];
  memory_request_t counted[SLICES];
  wire [SLICES-1:0] counted_valid;
"""
