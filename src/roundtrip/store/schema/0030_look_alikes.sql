-- Tokens by symbol or name, those read first first: what was read first is the older one of two that look alike.
DROP INDEX facts.token_by_symbol;
CREATE INDEX token_by_symbol ON facts.token (symbol_key, read_number);
CREATE INDEX token_by_name ON facts.token (lower(left(name, 64)), read_number);
