-- Who is sent to in turn, and within which bounds.

-- host: whose server is behind it, by which places are bounded; of Discord each webhook's own, of Telegram each chat's.
-- proven_at: since when it is known that whoever answers there wants this; null: not yet. answers_ms: how long its
-- answers take, as domain/channels.py counts it.
ALTER TABLE accounts.channel
    ADD COLUMN host       text        NOT NULL DEFAULT '',
    ADD COLUMN proven_at  timestamptz,
    ADD COLUMN answers_ms int         NOT NULL DEFAULT 0 CHECK (answers_ms >= 0);
UPDATE accounts.channel SET
    host = CASE kind WHEN 'webhook' THEN substring(shown FROM '^https?://([^/…]*)')
                     WHEN 'discord' THEN shown
                     ELSE 'telegram:' || convert_from(target, 'UTF8') END,
    proven_at = CASE WHEN kind <> 'webhook' THEN made_at END;

-- Rows that went to a host in the minute that began then, of webhooks that did not echo the challenge.
CREATE TABLE accounts.host_minute (
    host     text        PRIMARY KEY,
    began_at timestamptz NOT NULL,
    rows     int         NOT NULL CHECK (rows >= 0)
);
CREATE INDEX host_minute_by_time ON accounts.host_minute (began_at);

-- What is sent before other messages of its channel.
CREATE INDEX delivery_urgent ON accounts.delivery (channel_id)
    WHERE state = 'waiting' AND kind IN ('bag_guard', 'service');

-- Of kinds that go in turn: in which lane it waits, whose it is, and at which host it works. Null: it was not sorted yet,
-- or is not due.
ALTER TABLE jobs.job ADD COLUMN lane text, ADD COLUMN owner bigint, ADD COLUMN host text;
CREATE INDEX job_unsorted ON jobs.job (run_at, id) WHERE kind = 'deliver' AND lane IS NULL AND failed_at IS NULL;
CREATE INDEX job_turn ON jobs.job (kind, lane, owner, run_at, id) WHERE lane IS NOT NULL;
CREATE INDEX job_claimed ON jobs.job (kind) WHERE claim IS NOT NULL;

-- Whose turn was the last one of a lane: all workers go on from there.
CREATE TABLE jobs.turn (
    kind  text   NOT NULL,
    lane  text   NOT NULL,
    owner bigint NOT NULL,
    PRIMARY KEY (kind, lane)
);
