"""``labmates analyze``: one file per table or two, each thin."""
