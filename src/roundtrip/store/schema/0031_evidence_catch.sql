-- What the code ok of the check does not say, as domain/verdicts/catch names it. NULL: nothing, or checked by an earlier
-- release.
ALTER TABLE facts.evidence ADD COLUMN catch text;
