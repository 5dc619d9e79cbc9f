"""The iterated prisoner's dilemma: payoffs, matches, schedules, classical strategies, and comprehension questions.

Actions have the field's letters C (cooperate) and D (defect); players see neutral labels.
"""
