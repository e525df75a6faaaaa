-- What a newer memd says of a row in an export, or of a memory in a record, beyond what this one knows.

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

-- A team's logs are read like those of one's own devices: the cursors are the same, and each row has its version.

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

INSERT INTO team_said
  SELECT 'team:' || l.project, l.author || ' ' || l.device, r.name, '', r.seq, r.mark, r.state, 0, 0, 0, 0, '', ''
  FROM team_rows r JOIN team_logs l ON l.id = r.log_id;

INSERT INTO sync_cursors
  SELECT 'team:' || project, author || ' ' || device, '', 0 FROM team_logs;

DROP TABLE team_rows;
DROP TABLE team_logs;

CREATE INDEX team_said_by_uid ON team_said (uid);
