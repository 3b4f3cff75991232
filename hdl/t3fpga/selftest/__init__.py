"""Designs that test themselves, on a board or in a simulator."""
