"""Pages for people, over the same use cases: no second path to the data."""
