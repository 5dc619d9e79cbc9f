"""Who acts: the roles of the lab, their prompts, and the tools that an agent holds."""
