"""What several use cases run: the inputs, the session and the rounds of a check."""
