"""The golden model of the register file."""
