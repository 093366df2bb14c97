"""The only code that talks to the servers of people who are told something."""
