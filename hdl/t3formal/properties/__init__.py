"""Properties of the components, one file each."""
