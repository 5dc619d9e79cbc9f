"""Many runs: starting, following, resuming them."""
