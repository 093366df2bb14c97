"""Buys a token and sells it straight back inside a simulation, before you buy it."""

__version__ = "0.1.0"
