"""Fault campaigns: one fault in each run of a small co-simulation, and what becomes of it (docs/results/faults.md)."""
