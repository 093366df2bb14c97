"""Checks for programs of your own, over a node alone: no database, no server, no local chain."""
