-- What the published recipes weigh by: how often a memory is used and with which others, what it
-- names; and the verbatim words of a conversation, to be searched beside the memories.

CREATE TABLE uses (                    -- how often an answer returned a memory
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  count INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT;

CREATE TABLE coactivations (           -- how often one answer returned both
  low_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  high_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  count INTEGER NOT NULL,
  PRIMARY KEY (low_id, high_id),
  CHECK (low_id < high_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX coactivations_by_high ON coactivations (high_id);

CREATE TABLE entities (                -- what a memory names; the index writes it
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  name TEXT NOT NULL,                  -- folded
  kind TEXT NOT NULL,                  -- file, symbol, identifier or person
  PRIMARY KEY (summary_id, name, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX entities_by_name ON entities (name);

-- Every memory is indexed once more, for its entities.
INSERT OR REPLACE INTO changes (summary_id) SELECT id FROM summaries ORDER BY id;

CREATE VIEW turns AS                   -- what was said, word for word; its id is the event's
SELECT id, kind, text FROM (
  SELECT id, kind, CASE kind
    WHEN 'prompt' THEN payload ->> '$.prompt'
    WHEN 'compact_end' THEN payload ->> '$.compact_summary'
    ELSE payload ->> '$.last_assistant_message' END AS text
  FROM events WHERE kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end')
) WHERE text <> '';

CREATE VIRTUAL TABLE turns_fts USING fts5 (
  text,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER turns_inserted AFTER INSERT ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end') BEGIN
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;

CREATE TRIGGER turns_deleted AFTER DELETE ON events
WHEN old.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
END;

INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns ORDER BY id;
