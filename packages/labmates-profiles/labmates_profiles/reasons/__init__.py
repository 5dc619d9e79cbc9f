"""The reasons that players give for their choices in social dilemmas, labelled by a model."""
