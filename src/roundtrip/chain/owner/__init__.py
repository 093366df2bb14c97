"""What an owner's functions could change."""
