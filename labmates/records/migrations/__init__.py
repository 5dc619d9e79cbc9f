"""How the tables of older stores become those of today, with Alembic: one file in ``versions`` for each change."""
