-- What the user said of what was learned.

CREATE TABLE reviews (                 -- a memory without a row has still to be looked at
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  verdict TEXT NOT NULL,               -- kept, seen, everywhere or rejected
  at INTEGER NOT NULL,
  follows INTEGER REFERENCES summaries (id) ON DELETE SET NULL  -- the memory that it repeats, or that holds everywhere
) STRICT;

CREATE INDEX reviews_rejected ON reviews (summary_id) WHERE verdict = 'rejected' AND follows IS NULL;
CREATE INDEX reviews_by_followed ON reviews (follows) WHERE follows IS NOT NULL;

CREATE TRIGGER reviews_inserted AFTER INSERT ON reviews BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.summary_id);
  INSERT OR REPLACE INTO changes (summary_id)
    SELECT older_id FROM supersessions WHERE newer_id = new.summary_id AND undone_at IS NULL;
END;

CREATE TRIGGER reviews_deleted AFTER DELETE ON reviews BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (old.summary_id);
  INSERT OR REPLACE INTO changes (summary_id)
    SELECT older_id FROM supersessions WHERE newer_id = old.summary_id AND undone_at IS NULL;
END;
