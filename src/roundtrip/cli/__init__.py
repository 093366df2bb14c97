"""The commands: each module has the options and the output of a few."""
