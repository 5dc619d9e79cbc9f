"""A machine that executes most strategies many times faster than Python, with the same decisions."""
