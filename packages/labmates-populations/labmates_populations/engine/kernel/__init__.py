"""Code of the confined worker processes: strategies and their games. It imports only numpy."""
