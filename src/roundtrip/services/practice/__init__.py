"""Practice trading and its league."""
