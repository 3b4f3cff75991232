"""The map of arbitration: on which machines the communication-aware arbiter pays, how much, and why."""
