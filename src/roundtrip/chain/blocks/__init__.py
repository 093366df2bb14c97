"""Heads, blocks, logs and receipts."""
