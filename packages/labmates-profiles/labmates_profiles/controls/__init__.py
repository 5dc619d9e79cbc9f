"""Mechanisms that leave a dilemma's equilibria unchanged: controls for having any mechanism (CoopEval, section 3)."""
