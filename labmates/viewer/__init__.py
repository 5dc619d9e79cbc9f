"""A viewer of runs in a browser: local pages, for this user only, from a store opened read-only."""
