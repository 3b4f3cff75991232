"""The golden model of the memory slice."""
