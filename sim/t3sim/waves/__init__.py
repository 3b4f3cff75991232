"""Waveforms of parts of one GPU's T3 unit, in a window of a run (docs/guides/waves.md)."""
