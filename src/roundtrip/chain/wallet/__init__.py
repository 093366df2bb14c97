"""A wallet's own calls, payments and transactions."""
