"""Catalogues: a command for each registry, which lists, shows, checks and creates its entries."""
