"""Machine files and the sections of a machine."""
