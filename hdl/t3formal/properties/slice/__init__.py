"""Slice: arbiter, requests, tokens, occupancy monitor."""
