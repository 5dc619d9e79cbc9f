"""Pages of the site that are made from the code, and formulas."""
