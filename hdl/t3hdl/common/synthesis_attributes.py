"""Attributes of registers that tell synthesis what it must not do to them."""

from collections.abc import Mapping
from types import MappingProxyType

KEEP: Mapping[str, int | str] = MappingProxyType({"keep": "true", "preserve": 1, "syn_preserve": 1})
"""Of a register that is neither removed nor merged with an equal one that has them, too: ``keep`` for Yosys and Vivado,
``preserve`` for Quartus, ``syn_preserve`` for Synplify."""

SYNCHRONISER: Mapping[str, int | str] = MappingProxyType({
    **KEEP,
    "ASYNC_REG": "TRUE",
    "altera_attribute": "-name SYNCHRONIZER_IDENTIFICATION FORCED",
})  # fmt: skip
"""Of a synchroniser's flip-flops, which are also placed side by side and analysed for metastability: ``ASYNC_REG`` for
Vivado, ``altera_attribute`` for Quartus."""
