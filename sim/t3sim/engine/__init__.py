"""The inner loop of the co-simulator: one GPU, its memory and its T3 unit, as Numba functions over plain arrays.

Time is counted in cycles of the memory clock, which is also the unit's clock. Every part of the hardware, compiled RTL
or golden, is called through a function pointer. All functions are deterministic and release the interpreter lock.
"""
