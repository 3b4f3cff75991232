"""Rules that several parts keep: epochs, bursts, tiles that count once."""
