"""The words of generated pages."""
