"""Accounts: keys, sessions, profile, credits."""
