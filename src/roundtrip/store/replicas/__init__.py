"""Read replicas: which of them may answer, and their pools."""
