"""Evidence of checks."""
