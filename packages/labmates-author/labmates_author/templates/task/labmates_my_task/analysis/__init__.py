"""What scripted baselines compute for this task: one file for each piece of work, which is run in the sandbox."""

from labmates.tasks.analysis import Analysis

ANALYSIS = Analysis(
    package=__name__,
    titles={
        "prepare": "see the layout of the readings",
        "clean": "drop repeated rows and bring units together",
        "model": "fit the stiffness of each make over the weeks",
    },
    methods=(
        "Repeated rows were dropped, and readings in centimetres were converted.",
        "The logarithm of load per extension was regressed on the week, for each make.",
    ),
    doubt="makes that soften by little may be missed",
)
