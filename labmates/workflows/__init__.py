"""LangGraph graphs, one folder per kind of experiment, and their common protocol.

A folder declares its contributions in its ``__init__.py``: ``ENTRIES`` maps each entry-point group to names and places
(``".module:attribute"``). No code outside a folder names its experiment.
"""
