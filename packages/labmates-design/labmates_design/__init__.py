"""The design of studies: what they can find, and when they may stop."""
