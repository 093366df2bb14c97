"""What every page needs: the request, templates, static files, live streams."""
