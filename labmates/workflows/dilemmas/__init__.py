"""Social dilemmas under cooperation mechanisms, played by models against each other."""
