"""Writers of the generated pages in docs/."""
