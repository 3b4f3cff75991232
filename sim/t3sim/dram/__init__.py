"""HBM: timing constraints, command scheduler, request queues."""
