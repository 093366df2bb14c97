"""What is new of tokens: verdicts, launches, graduations, alerts."""
