"""What tokens would sell for, many at once."""
