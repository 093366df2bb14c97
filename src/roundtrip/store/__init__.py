"""The only code that talks SQL. Every function takes a connection; none commits."""
