"""The analysis code that scripted baselines run in the sandbox: one cell a file, run in one session.

The files are data: they are sent to the sandbox as text and never imported. All come after ``prepare``; they
see the data frame ``df`` and the names that the baseline puts before them (``mentions``: how often the prompt
names each column; ``claims``: what an earlier team stated). A printed line that begins with ``RESULT`` holds,
as JSON, what the cell found.
"""
