"""What a GPU of the engine shows of itself over time, without a part in what it does."""
