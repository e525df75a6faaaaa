-- A note in a file is a file's word, whoever put the file there; an earlier memd took it for a prompt of the user's.
-- What the user pinned, said again by hand or in a prompt, stays the user's; an edited memory is the user's already.

UPDATE summaries SET authority = 1
WHERE source IN ('import:markdown', 'import:okf') AND authority IN (2, 4) AND coalesce(pinned_by, 0) < 4
  AND NOT EXISTS (
    SELECT 1 FROM edges WHERE from_kind = 'summary' AND from_id = CAST(summaries.id AS TEXT)
    AND type = 'derives_from' AND to_kind = 'event');

UPDATE edges SET detail = json_set(detail, '$.authority', 1)
WHERE type = 'derives_from' AND to_kind = 'origin' AND detail ->> '$.authority' > 1
  AND EXISTS (
    SELECT 1 FROM summaries s WHERE s.id = CAST(edges.from_id AS INTEGER)
    AND s.source IN ('import:markdown', 'import:okf'));
