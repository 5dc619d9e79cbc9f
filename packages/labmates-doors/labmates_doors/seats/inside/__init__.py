"""Programs that run inside the sandbox of a command, beside it; none imports another module of labmates."""
