"""Where untrusted code runs: sessions of Python for agents, and the back ends that they come from."""
