"""The rewriting of a strategy's class into the subset of Python that is safe beside other strategies."""
