"""The check of a token, and its proof."""
