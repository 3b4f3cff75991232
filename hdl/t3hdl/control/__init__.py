"""What software sees: the register map and its description, the register file, AXI4-Lite."""
