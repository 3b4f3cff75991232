"""Whether an access waits for the tracker: co-simulated regimes, and streams of two contexts at the memory's rate."""
