"""The biomarker task: markers and subtypes in a trial."""
