"""The memory slice, per-channel front end of the DRAM scheduler: range match, arbitration, counting of updates."""
