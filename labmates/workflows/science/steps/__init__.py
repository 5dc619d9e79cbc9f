"""The kinds of steps of an organisation, one file each."""
