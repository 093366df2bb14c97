"""One module for each kind of job."""
