"""Seats whose agents come from outside: programs, functions and A2A endpoints, under the lab's pool and record."""
