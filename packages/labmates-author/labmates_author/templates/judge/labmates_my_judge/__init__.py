"""The judge my_judge for labmates."""
