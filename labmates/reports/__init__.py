"""Reports: all that a study has brought, as one page that needs nothing else."""
