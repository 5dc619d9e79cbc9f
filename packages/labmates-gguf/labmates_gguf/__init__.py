"""Model files in the GGUF format, served by llama.cpp on this machine."""
