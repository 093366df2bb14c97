"""Small helpers that every use case may use."""
