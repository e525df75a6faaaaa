"""claude-mem's database as two of its versions laid it out, with a little in it. For tests."""

import apsw

OLD = """
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT UNIQUE NOT NULL,
  sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL, project TEXT NOT NULL,
  text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
INSERT INTO sdk_sessions VALUES (1, 'session-old', 'm-old', 'ledger', 'hi', '2025-01-01', 1735689600000, 'completed');
INSERT INTO observations VALUES (1, 'm-old', 'ledger', 'Chose Decimal for money', 'decision', '2025-01-01', 1735689600000);
"""
NEW = """
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT UNIQUE NOT NULL,
  memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude',
  user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT,
  files_read TEXT, files_modified TEXT, prompt_number INTEGER, content_hash TEXT, merged_into_project TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT,
  files_edited TEXT, notes TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT NOT NULL, prompt_text TEXT NOT NULL);
CREATE TABLE directives (id INTEGER PRIMARY KEY, scope TEXT NOT NULL DEFAULT 'global', project TEXT,
  content TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active', created_at_epoch INTEGER NOT NULL);
INSERT INTO sdk_sessions VALUES (1, 'session-new', 'm-new', 'ledger', 'claude', 'hi', '2025-02-01', 1738368000000, 'completed');
INSERT INTO observations (id, memory_session_id, project, type, title, facts, narrative, concepts, files_modified,
  created_at, created_at_epoch) VALUES (7, 'm-new', 'ledger', 'bugfix', 'Rounding of totals mended',
  '["Totals are Decimal"]', 'The zzyzx totals were floats.', '["gotcha"]', '["src/totals.py"]', '2025-02-01', 1738368000000);
INSERT INTO observations (id, memory_session_id, project, type, created_at, created_at_epoch)
  VALUES (8, 'm-new', 'ledger', 'change', '2025-02-01', 1738368000001);
INSERT INTO session_summaries (id, memory_session_id, project, request, learned, created_at, created_at_epoch)
  VALUES (3, 'm-new', 'ledger', 'Mend the totals', 'Floats lose cents', '2025-02-01', 1738368000002);
INSERT INTO user_prompts VALUES (1, 'session-new', 'mend the totals');
INSERT INTO directives (id, content, created_at_epoch) VALUES (1, 'Always run the qwertz tests', 1738368000003);
"""


def build(path, layout=NEW):
    """Write a database; the connection, which is open, as claude-mem's would be."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(layout)
    return connection
