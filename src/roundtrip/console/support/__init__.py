"""Shared by all pages: the request, templates, static files, live streams."""
