"""The pages, one room of the house a file."""
