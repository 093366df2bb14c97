"""The pages, one subject a file."""
