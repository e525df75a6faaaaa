-- What is shared with other devices: the newest version of every record, without its words, and how far each place was read.

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
  expires_at INTEGER,
  UNIQUE (kind, one, link, other)
) STRICT;

CREATE INDEX sync_records_by_one ON sync_records (one);
CREATE INDEX sync_records_by_other ON sync_records (other) WHERE other <> '';
CREATE INDEX sync_records_by_device ON sync_records (device, id);

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
