"""People in a run: approvals, interrupts, and answers in place of a model."""
