-- Whether somebody asked for the check, or it was made again because something had changed: what nobody asked for
-- within a day is not checked again.
ALTER TABLE facts.evidence ADD COLUMN asked boolean NOT NULL DEFAULT true;
