"""What records of many runs have in common."""
