"""What is put around a game so that cooperation pays: repetition, reputation, mediators, contracts."""
