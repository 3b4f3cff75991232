"""Trigger: block table, ready lists, commands."""
