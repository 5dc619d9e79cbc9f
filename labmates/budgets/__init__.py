"""Shared credits: integer money, price lists, the ledger, and what each team may see of it."""
