"""What is made of the hardware: Verilog and what goes with it, area, manual."""
