"""Holder books and what is read from them."""
