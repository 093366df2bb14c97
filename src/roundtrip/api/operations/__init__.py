"""The table of operations, one subject a file."""
