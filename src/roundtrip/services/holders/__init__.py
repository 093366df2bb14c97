"""Who holds a token and how they got it."""
