-- Tokens by the beginning of their symbol or name, on a server of any collation.
CREATE INDEX token_by_symbol_start ON facts.token (symbol_key text_pattern_ops);
CREATE INDEX token_by_name_start ON facts.token (lower(left(name, 64)) text_pattern_ops);
