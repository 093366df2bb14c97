-- leased: calls of the day that processes took ahead and have not reported as made. calls + leased never exceed the day's
-- limit. What a killed process had not made stays leased until the day is over. lent: how many of those that the last
-- change wanted it got.
ALTER TABLE accounts.day
    ADD COLUMN leased int NOT NULL DEFAULT 0 CHECK (leased >= 0),
    ADD COLUMN lent   int NOT NULL DEFAULT 0;
