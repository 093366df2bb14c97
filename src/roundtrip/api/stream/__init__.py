"""The stream of events over HTTP."""
