"""Reads for the boards."""
