"""Scripted baselines that work in the science lab, and what a disposition means there.

- ``diligent`` follows the protocol with generic analysis code: what plain methods reach.
- ``hasty`` spends next to nothing and skips what it can: what hardly any work reaches.
- ``wasteful`` does diligent work and burns the pool around it: what the budget is for.
- ``talkative`` does diligent work with many words: what output limits and their remarks are for.
- ``silent`` answers in text and never calls a tool: a model without tool calling.
"""
