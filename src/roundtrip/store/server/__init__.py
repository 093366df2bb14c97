"""PostgreSQL and Valkey: connections, migrations, jobs, errors."""
