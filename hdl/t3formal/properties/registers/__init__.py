"""Register file and host bus."""
