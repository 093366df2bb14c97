-- The loss of the check's round trip in hundredths of a percent. NULL: not measured, or checked by an earlier release.
ALTER TABLE facts.evidence ADD COLUMN loss_bps int;
