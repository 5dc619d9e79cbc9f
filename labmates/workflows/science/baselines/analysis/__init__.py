"""The analysis code of scripted baselines: one cell per file, run in one sandbox session.

The files are data: they are sent to the sandbox as text and never imported. All run after ``prepare``, with the data
frame ``df`` and variables of the baseline (``mentions``: how often the prompt names each column; ``claims``: an earlier
team's findings). A printed line that begins with ``RESULT`` holds the cell's results as JSON.
"""
