"""Judges that score a report, each with a reason."""
