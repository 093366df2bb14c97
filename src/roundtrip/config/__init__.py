"""Settings, networks, and the files that come with the package."""
