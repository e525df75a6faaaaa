-- A team's memory: whose each memory is, which projects are shared, and what stands in each log on the server.

ALTER TABLE summaries ADD COLUMN author TEXT NOT NULL DEFAULT '';  -- a teammate; '' for what is this vault's own

CREATE INDEX summaries_by_author ON summaries (author) WHERE author <> '';

CREATE TABLE team_projects (           -- what was joined
  name TEXT PRIMARY KEY,               -- on the server
  project TEXT NOT NULL UNIQUE,        -- the key of the project here
  instructions INTEGER NOT NULL,       -- 1: memories of kind instruction are shared, too
  joined_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE team_logs (               -- how far each log was read, or written
  id INTEGER PRIMARY KEY,
  project TEXT NOT NULL,
  author TEXT NOT NULL,
  device TEXT NOT NULL,
  label TEXT NOT NULL,
  seq INTEGER NOT NULL,
  mark TEXT NOT NULL,                  -- the sum of the marks of its rows: greater than an integer may be
  UNIQUE (project, author, device)
) STRICT;

CREATE TABLE team_rows (               -- the rows of each log, without their words
  log_id INTEGER NOT NULL REFERENCES team_logs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,                  -- the uid of a memory, where it was made
  seq INTEGER NOT NULL,
  mark INTEGER NOT NULL,
  state TEXT NOT NULL,                 -- shared, withdrawn, forgotten or refused
  PRIMARY KEY (log_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX team_rows_by_name ON team_rows (name);
