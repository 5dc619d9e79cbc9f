"""The commands ``check`` and ``new`` of the verbs for tasks, judges, games, mechanisms and organisations."""
