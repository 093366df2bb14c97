-- leased: those of the day's calls that processes took ahead and have not reported as made. calls contains them, because
-- the release before compares calls with the day's limit and does not know leased; calls made are calls - leased. What a
-- killed process had not made stays leased until the day is over. lent: how many of those that the last change wanted it
-- got. No constraint compares the two: refunds of the release before would meet it.
ALTER TABLE accounts.day
    ADD COLUMN leased int NOT NULL DEFAULT 0 CHECK (leased >= 0),
    ADD COLUMN lent   int NOT NULL DEFAULT 0;
