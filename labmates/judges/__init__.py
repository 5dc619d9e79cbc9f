"""How good was it: judges that score a report, each with a reason."""
