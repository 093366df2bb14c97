"""One computation for equal requests, in one process and across processes."""
