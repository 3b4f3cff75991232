"""The words of the page of testbench results."""

HEAD = """\
# Testbench results

What [the testbenches of the Verilog](../guides/testbenches.md) came to in long runs, and [the NMC
ALU](#the-alus-arithmetic) against known results. This page is written by `python -m docs.pages testbenches` from
`docs/results/testbenches`.
"""

RUNS = """\
Preset `{preset}`: random traffic, compared with the golden model in every cycle, under Verilator and under Icarus with
the same seeds (`python -m tb.bench --preset {preset} --seeds {seeds} --cycles {cycles}`). *Cycles*: of all seeds
together, under each simulator. *Bins*: cases that random traffic is to meet; a bin that stays empty in runs of this
length is a failure.
"""

ARITHMETIC = """\
`t3 validate alu` puts cases through the compiled ALU and compares results and exception flags. *Alone*: cases that were
repeated with all other lanes masked off, because a line has one set of flags.
[TestFloat](http://www.jhauser.us/arithmetic/TestFloat.html) is release 3e; its cases are those of `testfloat_gen
FUNCTION -level LEVEL`, rounded to nearest even. It has no arithmetic in BF16 or INT32, and no minimum or maximum: there
the expected results are the golden arithmetic's, which the tests compare with NumPy, ml_dtypes and rational numbers.
"""
