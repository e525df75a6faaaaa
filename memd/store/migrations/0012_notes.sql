-- When agents were asked to note something.

CREATE TABLE asks (                    -- so that nobody is asked twice about the same exchange
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  through INTEGER NOT NULL,            -- the last prompt that it was about
  characters INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX asks_by_session ON asks (session_id, at);
