"""What a use case is run with: the context, caches, the newest block."""
