-- The session whose agent was asked, which may be a later one than that which it was asked about.

ALTER TABLE asks ADD COLUMN asked_in INTEGER REFERENCES sessions (id) ON DELETE CASCADE;
UPDATE asks SET asked_in = session_id;
CREATE INDEX asks_by_asked ON asks (asked_in, at);
