"""Tracker: tables, events, chunk counters, maintenance."""
