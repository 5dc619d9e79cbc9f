"""LangGraph graphs, one folder for each kind of experiment, and the shape that all kinds share.

A folder declares in its ``__init__.py`` what it brings: ``ENTRIES`` holds names and places (``".module:attribute"``) by
the group through which other packages bring the same. Nothing outside of a folder names its experiment.
"""
