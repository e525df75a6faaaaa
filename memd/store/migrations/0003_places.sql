-- What was shown to an agent unasked, where memd is switched off, and which projects became one.

CREATE TABLE injections (              -- what an agent was shown unasked: never the same twice
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  moment TEXT NOT NULL,                -- startup, resume, clear, compact or prompt
  at INTEGER NOT NULL,
  reason TEXT NOT NULL                 -- why this one, in words
) STRICT;

CREATE INDEX injections_by_session ON injections (session_id, at);
CREATE INDEX injections_by_summary ON injections (summary_id);

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

-- What a session begins with is looked up by kind; where it was compacted, and what was asked, by mark.
CREATE INDEX summaries_by_kind ON summaries (project_id, kind, at);
CREATE INDEX summaries_pinned ON summaries (project_id, at) WHERE pinned_at IS NOT NULL;
CREATE INDEX events_marks ON events (session_id, kind, at, turn)
  WHERE kind IN ('prompt', 'session_start', 'compact_start');

CREATE TABLE cues (                    -- by which words a rule or a decision is found again
  cue TEXT NOT NULL,                   -- a stem, or = and a hash of the whole title
  summary_id INTEGER NOT NULL REFERENCES summaries (id) ON DELETE CASCADE,
  PRIMARY KEY (cue, summary_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX cues_by_summary ON cues (summary_id);
