"""Interfaces between the modules: words, signatures, register map and its description."""
