-- A paused rule matches nothing. When it goes on, it counts from the blocks after that: from_number.
ALTER TABLE accounts.rule ADD COLUMN paused boolean NOT NULL DEFAULT false;
