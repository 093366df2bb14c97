"""The chain into the database: every launch, pool and trade, block by block."""
