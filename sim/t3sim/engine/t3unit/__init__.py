"""The T3 unit in a GPU: where its ports are, how it is programmed, and its parts behind the slices in time."""
