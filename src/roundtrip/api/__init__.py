"""The doors: one table of operations, one dispatch, one loop over the table for each door."""
