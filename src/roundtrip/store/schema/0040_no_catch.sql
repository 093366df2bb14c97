-- The word and the colour of a verdict follow from its code and level alone.
ALTER TABLE facts.evidence DROP COLUMN catch;
