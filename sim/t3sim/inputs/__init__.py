"""What a user asks for: a workload, its tiling, and a machine."""
