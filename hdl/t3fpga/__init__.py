"""The hardware on FPGA boards: a design that tests itself."""
