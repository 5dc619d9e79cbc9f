"""Scripted baselines of the science lab, and dispositions in it.

- ``diligent`` follows the protocol with the cells that the task ships: a baseline of standard methods.
  Without cells it reports nothing.
- ``hasty`` spends almost nothing and skips most work: a baseline of minimal effort.
- ``silent`` answers in text and never calls a tool: a model without tool calling.
"""
