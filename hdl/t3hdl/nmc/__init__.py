"""Near-memory computing: the ALU and its unit at the banks."""
