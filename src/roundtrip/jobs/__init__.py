"""What is done later, and never lost."""
