-- What became of what agents were shown unasked, and what memd costs them.

ALTER TABLE injections ADD COLUMN outcome TEXT;    -- used, overruled, ignored or untraceable; NULL until its session ended
ALTER TABLE injections ADD COLUMN evidence TEXT NOT NULL DEFAULT '';  -- the words of the memory by which its use was seen
ALTER TABLE injections ADD COLUMN held INTEGER NOT NULL DEFAULT 0;  -- 1: held back, to compare with; not shown
CREATE INDEX injections_unjudged ON injections (session_id) WHERE outcome IS NULL;
CREATE INDEX injections_held ON injections (session_id) WHERE held;
CREATE INDEX injections_by_time ON injections (at);

ALTER TABLE uses ADD COLUMN helped INTEGER NOT NULL DEFAULT 0;   -- sessions that used it where it was shown
ALTER TABLE uses ADD COLUMN ignored INTEGER NOT NULL DEFAULT 0;  -- since then, or since the user looked: those that did not

CREATE TABLE costs (
  day INTEGER NOT NULL,                -- days since 1970, UTC
  what TEXT NOT NULL,                  -- definitions, starts, prompts, asks or answers
  times INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  wait_ms INTEGER NOT NULL,            -- for which agents waited
  PRIMARY KEY (day, what)
) STRICT, WITHOUT ROWID;
