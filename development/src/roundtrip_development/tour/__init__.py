"""A walk through every tool on the local chain, and the page that shows it."""
