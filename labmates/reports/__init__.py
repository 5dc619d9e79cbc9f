"""Reports: a study's results as one self-contained page."""
