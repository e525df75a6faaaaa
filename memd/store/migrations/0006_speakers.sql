-- Whose word a memory is, so that a lesser voice never replaces it. A step in Python derives it for what is there.

ALTER TABLE summaries ADD COLUMN authority INTEGER NOT NULL DEFAULT 2;
ALTER TABLE summaries ADD COLUMN pinned_by INTEGER;

-- Who pinned was not stored; what the user has not pinned, he may unpin.
UPDATE summaries SET pinned_by = 5 WHERE pinned_at IS NOT NULL;

-- What the user has yet to judge is counted.
CREATE INDEX edges_contradicting ON edges (from_id, to_id)
  WHERE type = 'contradicts' AND from_kind = 'summary' AND to_kind = 'summary';
