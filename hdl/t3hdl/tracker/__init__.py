"""The tracker: tile counters, chunk counters, maintenance."""
