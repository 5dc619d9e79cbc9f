"""External agents on seats: programs, functions and A2A endpoints, under the lab's pool and record."""
