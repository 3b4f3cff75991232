"""The token network: from all slices to the tracker's banks."""
