"""Agents: the roles of the lab, their prompts, and their tools."""
