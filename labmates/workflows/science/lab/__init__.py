"""The lab below its steps: conditions, state and context of a run, money, evidence, prompts, writing and measures."""
