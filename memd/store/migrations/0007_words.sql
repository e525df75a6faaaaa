-- What the agent says in the middle of a turn, and what the user says when he refuses a tool call, are turns too.

DROP TRIGGER turns_inserted;
DROP TRIGGER turns_deleted;
DROP TRIGGER turns_updated;
DROP VIEW turns;

CREATE VIEW turns AS                   -- what was said, word for word; its id is the event's
SELECT id, kind, text FROM (
  SELECT id, kind, CASE kind
    WHEN 'prompt' THEN payload ->> '$.prompt'
    WHEN 'compact_end' THEN payload ->> '$.compact_summary'
    WHEN 'agent_text' THEN payload ->> '$.text'
    WHEN 'tool_refused' THEN payload ->> '$.said'
    ELSE payload ->> '$.last_assistant_message' END AS text
  FROM events
  WHERE kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused')
) WHERE text <> '';

CREATE TRIGGER turns_inserted AFTER INSERT ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;

CREATE TRIGGER turns_deleted AFTER DELETE ON events
WHEN old.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
END;

CREATE TRIGGER turns_updated AFTER UPDATE OF payload ON events
WHEN new.kind IN ('prompt', 'stop', 'subagent_stop', 'compact_end', 'agent_text', 'tool_refused') BEGIN
  DELETE FROM turns_fts WHERE rowid = old.id;
  INSERT INTO turns_fts (rowid, text) SELECT id, text FROM turns WHERE id = new.id;
END;
