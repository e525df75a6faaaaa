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
