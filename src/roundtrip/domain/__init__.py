"""Pure rules: no I/O, no clock, no randomness, no third-party package; integers for money."""
