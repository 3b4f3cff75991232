"""Longer texts of pages, and the formulas that pages compare with."""
