"""Sandboxes for untrusted code: Python sessions for agents, and the back ends that run them."""
