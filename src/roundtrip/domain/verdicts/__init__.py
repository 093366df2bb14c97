"""How verdicts of one token change from check to check."""
