-- What was kept only because it ended something is not told when it ends nothing any more, and its row in the index follows that.

CREATE INDEX summaries_ending ON summaries (id) WHERE rule IN ('retracted', 'said:turned', 'said:taken-back');

DROP TRIGGER supersessions_inserted;
DROP TRIGGER supersessions_updated;
DROP TRIGGER supersessions_deleted;

CREATE TRIGGER supersessions_inserted AFTER INSERT ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM supersessions y JOIN summaries e ON e.id = y.newer_id
    WHERE y.older_id = new.older_id AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

CREATE TRIGGER supersessions_updated AFTER UPDATE OF undone_at ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (new.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM supersessions y JOIN summaries e ON e.id = y.newer_id
    WHERE y.older_id = new.older_id AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

CREATE TRIGGER supersessions_deleted AFTER DELETE ON supersessions BEGIN
  INSERT OR REPLACE INTO changes (summary_id) VALUES (old.older_id);
  INSERT OR REPLACE INTO changes (summary_id) SELECT e.id FROM summaries e
    WHERE (e.id = old.newer_id OR e.id IN (SELECT newer_id FROM supersessions WHERE older_id = old.older_id))
    AND e.rule IN ('retracted', 'said:turned', 'said:taken-back');
END;

INSERT OR REPLACE INTO changes (summary_id)
  SELECT id FROM summaries WHERE rule IN ('retracted', 'said:turned', 'said:taken-back');
