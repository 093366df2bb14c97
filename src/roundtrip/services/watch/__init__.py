"""Follows, rules, alerts and the inbox."""
