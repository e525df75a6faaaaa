-- What a newer memd says of a shared record beyond what this one knows: kept, and handed on with the record.

ALTER TABLE sync_records ADD COLUMN extra TEXT;  -- JSON
