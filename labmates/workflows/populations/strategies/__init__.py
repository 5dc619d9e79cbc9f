"""Strategies written by models: described in words, then implemented and checked."""
