"""Small parts that the others are made of: queues, memories, arbitration, protection of stored bits."""
