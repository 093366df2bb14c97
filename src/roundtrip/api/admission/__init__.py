"""Who may call how often: minute limits, daily counts, credits."""
