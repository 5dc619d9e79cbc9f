"""Small helpers, each of which any folder may use."""
