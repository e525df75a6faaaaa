-- Memories that stay true: judgments, runs that can be undone, what was archived, and what is kept for how long.

CREATE TABLE runs (                    -- rounds of consolidation that changed something
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  examined INTEGER NOT NULL,
  pairs INTEGER NOT NULL,
  superseded INTEGER NOT NULL,
  contradicts INTEGER NOT NULL,
  similar INTEGER NOT NULL,
  undone_at INTEGER                    -- when the whole round was taken back
) STRICT;

ALTER TABLE supersessions ADD COLUMN run INTEGER REFERENCES runs (id);
CREATE INDEX supersessions_by_run ON supersessions (run) WHERE run IS NOT NULL;
CREATE INDEX edges_by_run ON edges (detail ->> '$.run') WHERE rule = 'near-duplicate';

CREATE TABLE forms (                   -- by which a restatement is found whatever its cosine
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  form INTEGER NOT NULL                -- a hash of its content words; consolidation writes it
) STRICT;

CREATE INDEX forms_by_form ON forms (form);

CREATE TABLE judgments (               -- what somebody said two memories are to each other
  id INTEGER PRIMARY KEY,
  newer_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  older_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  relation TEXT NOT NULL,              -- what the newer one is to the older one
  reason TEXT NOT NULL,                -- in words, redacted
  who TEXT NOT NULL,                   -- agent or user
  at INTEGER NOT NULL,
  undone_at INTEGER
) STRICT;

CREATE UNIQUE INDEX judgments_live ON judgments (min(newer_id, older_id), max(newer_id, older_id))
  WHERE undone_at IS NULL;
CREATE INDEX judgments_by_newer ON judgments (newer_id);
CREATE INDEX judgments_by_older ON judgments (older_id);

-- What is said again or contradicted is trusted more or less: the index must learn that, too.
DROP TRIGGER summaries_updated;

CREATE TRIGGER summaries_updated AFTER UPDATE OF
  project_id, session_id, kind, tier, source, title, body, topic_key, tags, files, at, expires_at, pinned_at,
  quality, confidence, revisions, duplicates, archived_at
ON summaries BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.id);
END;

-- What contradicted each other before counts from now on.
UPDATE summaries SET confidence = confidence / (confidence + (1 - confidence) * (1 << doubted.times)) FROM (
  SELECT one, count(*) AS times FROM (
    SELECT CAST(from_id AS INTEGER) AS one, CAST(to_id AS INTEGER) AS other FROM edges
    WHERE type = 'contradicts' AND from_kind = 'summary' AND to_kind = 'summary'
    UNION SELECT CAST(to_id AS INTEGER), CAST(from_id AS INTEGER) FROM edges
    WHERE type = 'contradicts' AND from_kind = 'summary' AND to_kind = 'summary'
  ) GROUP BY one
) AS doubted WHERE doubted.one = summaries.id AND confidence > 0;

CREATE TRIGGER turns_updated AFTER UPDATE OF payload ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;

ALTER TABLE summaries ADD COLUMN archived_at INTEGER;

CREATE TABLE compactions (             -- events of which only what memories cite is left
  event_id INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  bytes INTEGER NOT NULL               -- how many went
) STRICT;
