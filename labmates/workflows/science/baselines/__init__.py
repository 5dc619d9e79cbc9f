"""Scripted baselines of the science lab, and dispositions in it.

- ``diligent`` follows the protocol with generic analysis code: a baseline of standard methods.
- ``hasty`` spends almost nothing and skips most work: a baseline of minimal effort.
- ``silent`` answers in text and never calls a tool: a model without tool calling.
"""
