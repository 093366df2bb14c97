"""The table of operations, some rows a file."""
