-- A rule may be about removals of active liquidity.
ALTER TABLE accounts.rule DROP CONSTRAINT rule_verb_check, ADD CONSTRAINT rule_verb_check
    CHECK (verb IN ('buying', 'selling', 'launching', 'graduating', 'moving', 'draining', 'removing'));
