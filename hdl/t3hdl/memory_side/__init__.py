"""What stands at the memory channels and at the egress: match, arbitrate, count, merge tokens."""
