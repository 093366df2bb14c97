"""Holder books and winners, read from the database."""
