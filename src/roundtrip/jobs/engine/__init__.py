"""Taking jobs from PostgreSQL and running them."""
