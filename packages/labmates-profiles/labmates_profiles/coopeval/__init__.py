"""The published data of CoopEval: the authors' ratings beside ours, and the models' choices."""
