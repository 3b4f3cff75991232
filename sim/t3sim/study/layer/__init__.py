"""What one GPU runs in one layer of a transformer: its kernels with their work."""
