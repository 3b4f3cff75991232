"""One run from request to result."""
