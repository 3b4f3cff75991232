"""A transformer of the user's own: its layers, its all-reduced GEMMs, and where they come from."""
