"""The commands of development: the demo, its chain, the tour, and what publishes the documentation."""
