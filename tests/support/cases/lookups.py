"""What is asked about anything: a transaction, a word."""

from .base import Bad, Good

GOOD: Good = {}

BAD: Bad = {}
