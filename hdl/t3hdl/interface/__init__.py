"""What the parts agree on: words, signatures, the register map and its description."""
