"""The T3 unit as the engine sees it: compiled RTL or the golden model."""
