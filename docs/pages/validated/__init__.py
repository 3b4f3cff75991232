"""Sections of the page of validation: what is simulated for it, and what was reproduced."""
