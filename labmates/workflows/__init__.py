"""LangGraph graphs, one folder for each kind of experiment, and the shape that all kinds share."""
