"""The iterated prisoner's dilemma: payoffs, matches, schedules, classical strategies, and what can be asked of a match.

Actions are the field's C (cooperate) and D (defect) here; what players read and write is another matter.
"""
