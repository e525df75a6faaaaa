-- What a session was told unasked, and which memories hold for a file or a command alone.

CREATE TABLE told (                    -- since the session last lost its context
  session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
  tokens INTEGER NOT NULL,
  waited_ms INTEGER NOT NULL             -- for which its hooks were held up
) STRICT;

CREATE INDEX summaries_scoped ON summaries (project_id) WHERE instr(tags, '"scope:') > 0;
