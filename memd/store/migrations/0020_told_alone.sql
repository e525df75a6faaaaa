-- No session is held back to compare with any more: what an agent was not shown is no injection.

DROP INDEX injections_held;
DELETE FROM injections WHERE held;
ALTER TABLE injections DROP COLUMN held;
