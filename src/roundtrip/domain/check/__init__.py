"""Evidence, flags and the verdict."""
