"""Proofs of the hardware: properties beside abstract models, and the tools that prove them or show why not."""
