"""The machine that executes compiled strategies as numbers (`lowering`), without Python: many times faster."""
