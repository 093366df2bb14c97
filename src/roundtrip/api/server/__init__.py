"""Connections: accepting, protocol bounds, overload, draining."""
