-- The vault, whole: what all migrations together must yield, proven by a test.
-- Times are UTC milliseconds. Truth first, then what is derived from it and can be rebuilt.
--
-- What one step writes and another reads later, and what each row buys. None is read by the next step of the same
-- process alone: all of them must outlive a killed daemon, or are read by another program.
--   changes              no writer of a memory knows the index, and one that was committed is indexed after a crash
--   events.distilled     a turn is distilled when it has ended, which may be after a restart, and again when it changes
--   summaries.consolidated   only what is new or changed is compared with all others
--   compactions          an event that was made smaller is no other event with the same key, and is not made smaller again
--   cues, forms          a statement finds the one that it repeats before the index has seen either
--   saved, unsaved, labels   a start reads the index's copy and what changed since, instead of every passage
--   told                 a restart does not give a session's budget back
--   asks                 a restart does not have an agent asked again about the same exchange
--   costs                what memd cost by weeks, when the sessions have long ended
--   sync_records.shown   what changed here since the last sync is found without a second copy of it
--   sync_cursors, sync_places   a sync reads and sends what is new
--   team_said            what a teammate withdraws is told from what another device of the same person still says
--   imports              a file that was read is not read again

-- ── Truth ──────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE projects (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,            -- the directory that names it, or 'global'
  name TEXT NOT NULL,
  reason TEXT NOT NULL,                -- why that directory, in words
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  client TEXT NOT NULL,
  key TEXT NOT NULL,                   -- the client's own id of it
  project_id INTEGER NOT NULL REFERENCES projects (id),
  directory TEXT,
  title TEXT,                          -- its first prompt, shortened, or what its client calls it
  started_at INTEGER NOT NULL,
  last_event_at INTEGER NOT NULL,
  UNIQUE (client, key)
) STRICT;

CREATE INDEX sessions_by_project ON sessions (project_id, started_at);

CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- the sequence number that a capture is acknowledged with
  key TEXT NOT NULL UNIQUE,            -- idempotence: a second copy, or an import, converges here
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  kind TEXT NOT NULL,
  name TEXT NOT NULL,                  -- the client's own name of it
  at INTEGER NOT NULL,
  source TEXT NOT NULL,                -- live, spool or import
  turn TEXT,                           -- the client's id of the prompt it belongs to
  tool TEXT,
  agent TEXT,
  payload TEXT NOT NULL,               -- JSON, redacted and bounded
  distilled INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX events_by_session ON events (session_id, at, id);
CREATE INDEX events_pending ON events (session_id, id) WHERE distilled = 0;
CREATE INDEX events_marks ON events (session_id, kind, at, turn)
  WHERE kind IN ('prompt', 'session_start', 'compact_start');

CREATE TABLE summaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: people write #12 down
  uid TEXT NOT NULL UNIQUE,
  project_id INTEGER NOT NULL REFERENCES projects (id),
  session_id INTEGER REFERENCES sessions (id),
  episode TEXT,                        -- the turn that it was distilled from
  kind TEXT NOT NULL,
  tier TEXT NOT NULL,
  source TEXT NOT NULL,                -- who gave it: claude-code, agent, user, …
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  topic_key TEXT,
  tags TEXT NOT NULL DEFAULT '[]',     -- JSON
  files TEXT NOT NULL DEFAULT '[]',    -- JSON
  at INTEGER NOT NULL,                 -- the time of its events
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER,
  pinned_at INTEGER,
  confidence REAL NOT NULL DEFAULT 0.5,
  quality REAL NOT NULL DEFAULT 0.5,
  revisions INTEGER NOT NULL DEFAULT 1,
  duplicates INTEGER NOT NULL DEFAULT 1,
  rule TEXT NOT NULL,                  -- the distiller's rule that wrote it
  consolidated INTEGER NOT NULL DEFAULT 0
, archived_at INTEGER,                   -- put away: hidden, and shown again when said again
  authority INTEGER NOT NULL DEFAULT 2,  -- whose word it is: 1 a tool's, 2 and 3 the agent's, 4 and 5 the user's
  pinned_by INTEGER,                     -- the same of who pinned it
  author TEXT NOT NULL DEFAULT '') STRICT;  -- a teammate; '' for what is this vault's own

CREATE INDEX summaries_by_time ON summaries (at, id);
CREATE INDEX summaries_by_session ON summaries (session_id, at, id);
CREATE INDEX summaries_by_topic ON summaries (topic_key, project_id) WHERE topic_key IS NOT NULL;
CREATE INDEX summaries_to_consolidate ON summaries (id) WHERE consolidated = 0;
CREATE INDEX summaries_by_kind ON summaries (project_id, kind, at);
CREATE INDEX summaries_ending ON summaries (id) WHERE rule IN ('retracted', 'said:turned', 'said:taken-back');
CREATE INDEX summaries_by_author ON summaries (author) WHERE author <> '';
CREATE INDEX summaries_pinned ON summaries (project_id, at) WHERE pinned_at IS NOT NULL;
CREATE INDEX summaries_scoped ON summaries (project_id) WHERE instr(tags, '"scope:') > 0;

CREATE TABLE supersessions (
  id INTEGER PRIMARY KEY,
  newer_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  older_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  rule TEXT NOT NULL,
  cosine REAL,
  guard TEXT NOT NULL,                 -- what the guards found, in words
  at INTEGER NOT NULL,
  undone_at INTEGER
, run INTEGER REFERENCES runs (id)) STRICT;

CREATE UNIQUE INDEX supersessions_live ON supersessions (older_id) WHERE undone_at IS NULL;
CREATE INDEX supersessions_by_newer ON supersessions (newer_id);
CREATE INDEX supersessions_by_older ON supersessions (older_id);
CREATE INDEX supersessions_by_run ON supersessions (run) WHERE run IS NOT NULL;

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

CREATE TABLE edges (
  id INTEGER PRIMARY KEY,
  from_kind TEXT NOT NULL,
  from_id TEXT NOT NULL,
  type TEXT NOT NULL,
  to_kind TEXT NOT NULL,
  to_id TEXT NOT NULL,
  confidence REAL NOT NULL DEFAULT 1.0,
  rule TEXT NOT NULL,
  at INTEGER NOT NULL,
  detail TEXT NOT NULL DEFAULT '{}',   -- JSON
  UNIQUE (from_kind, from_id, type, to_kind, to_id)
) STRICT;

CREATE INDEX edges_by_target ON edges (to_kind, to_id);
CREATE INDEX edges_contradicting ON edges (from_id, to_id)
  WHERE type = 'contradicts' AND from_kind = 'summary' AND to_kind = 'summary';
CREATE INDEX edges_by_run ON edges (detail ->> '$.run') WHERE rule = 'near-duplicate';

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

CREATE TABLE uses (                    -- how often an answer returned a memory
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  count INTEGER NOT NULL,
  last_at INTEGER NOT NULL
, helped INTEGER NOT NULL DEFAULT 0, ignored INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE coactivations (           -- how often one answer returned both
  low_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  high_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  count INTEGER NOT NULL,
  PRIMARY KEY (low_id, high_id),
  CHECK (low_id < high_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX coactivations_by_high ON coactivations (high_id);

CREATE TABLE injections (              -- what an agent was shown unasked: never the same twice
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  moment TEXT NOT NULL,                -- startup, resume, clear, compact or prompt
  at INTEGER NOT NULL,
  reason TEXT NOT NULL                 -- why this one, in words
, outcome TEXT, evidence TEXT NOT NULL DEFAULT '') STRICT;

CREATE INDEX injections_by_session ON injections (session_id, at);
CREATE INDEX injections_by_summary ON injections (summary_id);
CREATE INDEX injections_unjudged ON injections (session_id) WHERE outcome IS NULL;
CREATE INDEX injections_by_time ON injections (at);

CREATE TABLE costs (                   -- what memd costs the agents, by day
  day INTEGER NOT NULL,                -- days since 1970, UTC
  what TEXT NOT NULL,                  -- definitions, starts, prompts, asks or answers
  times INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  wait_ms INTEGER NOT NULL,            -- for which agents waited
  PRIMARY KEY (day, what)
) STRICT, WITHOUT ROWID;

CREATE TABLE told (                    -- since the session last lost its context
  session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
  tokens INTEGER NOT NULL,
  waited_ms INTEGER NOT NULL             -- for which its hooks were held up
) STRICT;

CREATE TABLE asks (                    -- so that nobody is asked twice about the same exchange
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  through INTEGER NOT NULL,            -- the last prompt that it was about
  characters INTEGER NOT NULL,
  at INTEGER NOT NULL
, asked_in INTEGER REFERENCES sessions (id) ON DELETE CASCADE) STRICT;

CREATE INDEX asks_by_session ON asks (session_id, at);
CREATE INDEX asks_by_asked ON asks (asked_in, at);

CREATE TABLE reviews (                 -- a memory without a row has still to be looked at
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  verdict TEXT NOT NULL,               -- kept, seen, everywhere or rejected
  at INTEGER NOT NULL,
  follows INTEGER REFERENCES summaries (id) ON DELETE SET NULL  -- the memory that it repeats, or that holds everywhere
) STRICT;

CREATE INDEX reviews_rejected ON reviews (summary_id) WHERE verdict = 'rejected' AND follows IS NULL;
CREATE INDEX reviews_by_followed ON reviews (follows) WHERE follows IS NOT NULL;

CREATE TABLE enforced (                -- the rules that the user wants kept: a call that breaks one is refused
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE compactions (             -- events of which only what memories cite is left
  event_id INTEGER PRIMARY KEY REFERENCES events (id) ON DELETE CASCADE,
  at INTEGER NOT NULL,
  bytes INTEGER NOT NULL               -- how many went
) STRICT;

CREATE TABLE switches (                -- where a person wants less of memd than everywhere
  scope TEXT NOT NULL,                 -- project or session
  target TEXT NOT NULL,                -- the project's key, or the client's own id of the session
  captures INTEGER NOT NULL,           -- 0: nothing new is kept
  recalls INTEGER NOT NULL,            -- 0: nothing is shown unasked
  at INTEGER NOT NULL,
  PRIMARY KEY (scope, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE aliases (                 -- keys of projects that were merged into another
  key TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects (id),
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX aliases_by_project ON aliases (project_id);

CREATE TABLE receipts (                -- the ledger: received = stored + duplicate + filtered + refused
  source TEXT NOT NULL,
  outcome TEXT NOT NULL,
  reason TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (source, outcome, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE forgotten (               -- hashes only: what was forgotten does not come back by import
  key TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE imports (                 -- files already read, so that a second import skips them
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  modified_at INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE team_projects (           -- what was joined
  name TEXT PRIMARY KEY,               -- on the server
  project TEXT NOT NULL UNIQUE,        -- the key of the project here
  instructions INTEGER NOT NULL,       -- 1: memories of kind instruction are shared, too
  joined_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE team_said (               -- the rows of each log, without their words
  place TEXT NOT NULL,
  log TEXT NOT NULL,                   -- author and device
  name TEXT NOT NULL,                  -- the uid of a memory, where it was made
  uid TEXT NOT NULL,                   -- and here
  seq INTEGER NOT NULL,                -- 0: not seen yet while the log is read again
  mark INTEGER NOT NULL,
  state TEXT NOT NULL,                 -- shared, withdrawn, forgotten, refused or newer
  generation INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  wall INTEGER NOT NULL,
  counter INTEGER NOT NULL,
  device TEXT NOT NULL,
  beside TEXT NOT NULL,                -- the uids here of other values of its topic that its device lets stand
  PRIMARY KEY (place, log, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX team_said_by_uid ON team_said (uid);

CREATE TABLE spaces (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  version TEXT NOT NULL,
  digest TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  document_prefix TEXT NOT NULL,
  query_prefix TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is shared with other devices, without its words, and how far each place was read

CREATE TABLE sync_records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows with every change: what is above a number has still to be sent
  kind TEXT NOT NULL,
  one TEXT NOT NULL,                   -- a uid and how often it was erased before, or a hash of a project's key
  link TEXT NOT NULL,                  -- the type of an edge
  other TEXT NOT NULL,
  rank INTEGER NOT NULL,
  wall INTEGER NOT NULL,               -- these three: the hybrid logical clock
  counter INTEGER NOT NULL,
  device TEXT NOT NULL,
  live INTEGER NOT NULL,               -- 0: it was taken back
  shown TEXT NOT NULL,                 -- a hash of what the tables said of it when it was last compared; '' for nothing
  project TEXT NOT NULL,               -- a hash of the key of a memory's project
  expires_at INTEGER, extra TEXT,  -- JSON of the fields that a newer memd has
  UNIQUE (kind, one, link, other)
) STRICT;

CREATE INDEX sync_records_by_one ON sync_records (one);
CREATE INDEX sync_records_by_other ON sync_records (other) WHERE other <> '';
CREATE INDEX sync_records_by_device ON sync_records (device, id);

CREATE TABLE unknown_fields (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                  -- of the record in an export
  one TEXT NOT NULL,                   -- what it is of: a uid, the key of an event, or a hash of another name
  link TEXT NOT NULL,                  -- a hash of what else its name has, or ''
  other TEXT NOT NULL,                 -- the other end, or ''
  fields TEXT NOT NULL,                -- JSON
  UNIQUE (kind, one, link, other)
) STRICT;

CREATE INDEX unknown_fields_by_one ON unknown_fields (one);
CREATE INDEX unknown_fields_by_other ON unknown_fields (other) WHERE other <> '';

CREATE TRIGGER unknown_of_summaries_deleted AFTER DELETE ON summaries BEGIN
  DELETE FROM unknown_fields WHERE one = old.uid;
  DELETE FROM unknown_fields WHERE other = old.uid AND other <> '';
END;

CREATE TRIGGER unknown_of_events_deleted AFTER DELETE ON events BEGIN
  DELETE FROM unknown_fields WHERE one = old.key;
  DELETE FROM unknown_fields WHERE other = old.key AND other <> '';
END;

CREATE TRIGGER unknown_of_sessions_deleted AFTER DELETE ON sessions BEGIN
  DELETE FROM unknown_fields WHERE one = old.uid;
  DELETE FROM unknown_fields WHERE other = old.uid AND other <> '';
END;

CREATE TABLE sync_cursors (            -- how far the log of a device was read at a place
  place TEXT NOT NULL,
  device TEXT NOT NULL,
  position TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (place, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_places (
  place TEXT PRIMARY KEY,
  sent INTEGER NOT NULL,               -- the id of the last record that stands in our log there
  erasures INTEGER NOT NULL,           -- how many erasures our log there has followed
  synced_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- ── The join: what the index has yet to learn ──────────────────────────────────────────────────

CREATE TABLE changes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  summary_id INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TRIGGER summaries_inserted AFTER INSERT ON summaries BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.id);
END;

CREATE TRIGGER summaries_updated AFTER UPDATE OF
  project_id, session_id, kind, tier, source, title, body, topic_key, tags, files, at, expires_at, pinned_at,
  quality, confidence, revisions, duplicates, archived_at
ON summaries BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.id);
END;

CREATE TRIGGER summaries_deleted AFTER DELETE ON summaries BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (old.id);
  DELETE FROM saved;
  DELETE FROM unsaved;
  DELETE FROM labels;
END;

CREATE TRIGGER supersessions_inserted AFTER INSERT ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM supersessions y JOIN summaries e ON e.id = y.newer_id
    WHERE y.older_id = new.older_id AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

CREATE TRIGGER supersessions_updated AFTER UPDATE OF undone_at ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM supersessions y JOIN summaries e ON e.id = y.newer_id
    WHERE y.older_id = new.older_id AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

CREATE TRIGGER supersessions_deleted AFTER DELETE ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (old.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM summaries e
    WHERE (e.id = old.newer_id OR e.id IN (SELECT newer_id FROM supersessions WHERE older_id = old.older_id))
    AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

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

-- ── Derived: rebuildable by `memd reindex`, equal to the rebuilt one at all times ──────────────

CREATE TABLE terms (                   -- the vocabulary; gone when its last posting goes
  id INTEGER PRIMARY KEY,
  term TEXT NOT NULL UNIQUE,
  passages INTEGER NOT NULL            -- in how many it stands
) STRICT;

CREATE TABLE passages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  summary_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,                -- 0 for the first of its summary
  start INTEGER NOT NULL,              -- characters of the body, [start, stop)
  stop INTEGER NOT NULL,
  length INTEGER NOT NULL,             -- terms, title and body together
  postings BLOB NOT NULL,              -- packed, see store/fulltext.py
  UNIQUE (summary_id, seq)
) STRICT;

CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,              -- the space's id · 2^40 + the passage's id
  vector BLOB NOT NULL                 -- a byte a dimension, rotated, and a float32 scale
) STRICT;

CREATE VIRTUAL TABLE passages_fts USING fts5 (
  title, body, identifiers,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER passages_deleted AFTER DELETE ON passages BEGIN
  DELETE FROM passages_fts WHERE rowid = old.id;
  DELETE FROM vectors WHERE id IN (SELECT spaces.id * 1099511627776 + old.id FROM spaces);
END;

CREATE TABLE entities (                -- what a memory names; the index writes it
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  name TEXT NOT NULL,                  -- folded
  kind TEXT NOT NULL,                  -- file, symbol, identifier or person
  PRIMARY KEY (summary_id, name, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE cues (                    -- by which words a rule or a decision is found again
  cue TEXT NOT NULL,                   -- a stem, or = and a hash of the whole title
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  PRIMARY KEY (cue, summary_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX cues_by_summary ON cues (summary_id);

CREATE TABLE saved (                   -- the copy of the index beside the vault that holds; none, or one
  one INTEGER PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL                   -- of its directory; random, so that no other copy is taken for it
) STRICT;

CREATE TABLE unsaved (                 -- memories that were indexed since that copy was made
  summary_id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE labels (                  -- what the codes in that copy stand for: it has no text itself
  kind TEXT NOT NULL,                  -- sources or tags
  code INTEGER NOT NULL,
  value TEXT NOT NULL,                 -- JSON
  PRIMARY KEY (kind, code)
) STRICT, WITHOUT ROWID;

CREATE VIEW turns AS                   -- what was said, word for word; its id is the event's
SELECT id, kind, text FROM (
  SELECT id, kind, CASE kind
    WHEN 'prompt' THEN payload ->> '$.prompt'
    WHEN 'compact_end' THEN payload ->> '$.compact_summary'
    WHEN 'agent_text' THEN payload ->> '$.text'
    WHEN 'tool_refused' THEN payload ->> '$.said'
    ELSE payload ->> '$.last_assistant_message' END AS text
  FROM events
  WHERE kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused')
) WHERE text <> '';

CREATE VIRTUAL TABLE turns_fts USING fts5 (
  text,
  content = '', contentless_delete = 1,
  tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER turns_inserted AFTER INSERT ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;

CREATE TRIGGER turns_deleted AFTER DELETE ON events
WHEN old.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
END;

CREATE TRIGGER turns_updated AFTER UPDATE OF payload ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;

CREATE TABLE forms (                   -- by which a restatement is found whatever its cosine
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  form INTEGER NOT NULL                -- a hash of its content words; consolidation writes it
) STRICT;

CREATE INDEX forms_by_form ON forms (form);
