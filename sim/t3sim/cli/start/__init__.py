"""The first minutes: a demonstration, completion of the shell, and repairs."""
