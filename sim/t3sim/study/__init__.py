"""Many runs: sweeps, the paper's results, charts and tables."""
