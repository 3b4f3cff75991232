"""What limited a run, in sentences made from its record (docs/guides/explain.md)."""
