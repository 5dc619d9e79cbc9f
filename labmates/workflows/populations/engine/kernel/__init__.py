"""What runs in the confined worker processes: strategies and the games that they play. It imports numpy alone."""
