-- The index saved beside the vault: which copy of it holds, and what that copy does not know.

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

-- What goes from the truth does not stay in a copy: it holds no more, and the index takes it away.
DROP TRIGGER summaries_deleted;

CREATE TRIGGER summaries_deleted AFTER DELETE ON summaries BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (old.id);
  DELETE FROM saved;
  DELETE FROM unsaved;
  DELETE FROM labels;
END;

-- Vectors of local spaces are computed, not kept. Those of models keep their bytes: whoever reads them
-- tells the former ones (float16) by their length, and writes them anew when there is time.
CREATE TABLE former AS
  SELECT v.space_id * 1099511627776 + v.passage_id AS id, v.vector FROM vectors v
  JOIN spaces s ON s.id = v.space_id WHERE s.provider <> 'hashing' ORDER BY 1;
DROP TABLE vectors;
DELETE FROM spaces WHERE provider = 'hashing';

CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,              -- the space's id · 2^40 + the passage's id
  vector BLOB NOT NULL                 -- a byte a dimension, rotated, and a float32 scale
) STRICT;

INSERT INTO vectors (id, vector) SELECT id, vector FROM former ORDER BY id;
DROP TABLE former;

DROP TRIGGER passages_deleted;

CREATE TRIGGER passages_deleted AFTER DELETE ON passages BEGIN
  DELETE FROM passages_fts WHERE rowid = old.id;
  DELETE FROM vectors WHERE id IN (SELECT spaces.id * 1099511627776 + old.id FROM spaces);
END;

-- Postings take a third of their bytes now (store/packing.py); only the comment of the column changes here.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '(term u4, in title u1, in body u1) each, little-endian', 'packed, see store/packing.py')
  WHERE name = 'passages';
PRAGMA writable_schema = RESET;

-- Nobody asks for the memories that name something: a fifth of a vault's derived bytes for nothing.
DROP INDEX entities_by_name;

-- What superseded a memory is asked for with every erasure, undone or not: the unique index has only the live ones.
CREATE INDEX supersessions_by_older ON supersessions (older_id);
