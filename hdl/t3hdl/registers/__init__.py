"""What software sees: the register file, AXI4-Lite and its clock-domain crossing."""
