"""Practice trading and the league."""
