-- Takes no time. A release of before still answers, but slowly where it asks for shares between the two bounds.
DROP INDEX facts.trade_large_part;
