"""Self-tests of a tracker without a unit, for small boards."""
