"""Happenings, alerts, follows, rules, bags."""
