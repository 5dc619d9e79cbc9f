"""Bundles: studies in one file that anybody can check, and leaderboards of checked bundles."""
