"""Practice trades and the league."""
