"""Simulated trades: requests, legs, outcomes."""
