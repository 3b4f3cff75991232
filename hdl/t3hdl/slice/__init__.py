"""The memory slice in front of each channel's DRAM scheduler: match, arbitrate, count."""
