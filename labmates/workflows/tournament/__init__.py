"""Tournaments of the iterated prisoner's dilemma: teams, planner and critic, three structures."""
