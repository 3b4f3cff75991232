"""Traces of runs for Perfetto (docs/guides/traces.md)."""
