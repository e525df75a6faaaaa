-- What a team shares. One writer a log: a device numbers its own rows, so a follower needs one number a log,
-- and no sequence, lock or transaction id of the server has a meaning. Members are database users.

CREATE SCHEMA memd;

CREATE TABLE memd.migrations (
  number integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE memd.projects (
  name text PRIMARY KEY CHECK (name <> '' AND char_length(name) <= 200),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE memd.members (
  project text NOT NULL REFERENCES memd.projects (name) ON DELETE CASCADE,
  member text NOT NULL,
  role text NOT NULL CHECK (role IN ('reader', 'writer', 'maintainer')),
  granted_by text NOT NULL,
  granted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project, member)
);

CREATE TABLE memd.heads (               -- one a log: how far it goes, and the sum of its rows' marks
  project text NOT NULL REFERENCES memd.projects (name) ON DELETE CASCADE,
  author text NOT NULL DEFAULT session_user,
  device text NOT NULL CHECK (device ~ '^[0-9a-f]{16}$'),
  label text NOT NULL CHECK (char_length(label) <= 100),
  seq bigint NOT NULL CHECK (seq >= 0),
  mark numeric NOT NULL,
  written_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project, author, device)
);

CREATE TABLE memd.records (             -- a log has one row a name: its newest; a newer one has a greater number
  project text NOT NULL,
  author text NOT NULL DEFAULT session_user,
  device text NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  name text NOT NULL CHECK (name <> '' AND char_length(name) <= 500),
  mark bigint NOT NULL,                 -- a hash of number, name and record
  record text NOT NULL CHECK (octet_length(record) <= 1048576),
  PRIMARY KEY (project, author, device, seq),
  UNIQUE (project, author, device, name),
  FOREIGN KEY (project, author, device) REFERENCES memd.heads ON DELETE CASCADE
);

-- Whoever may connect may try; which rows exist for them is for the policies below. The owner stands above them.

GRANT USAGE ON SCHEMA memd TO PUBLIC;
GRANT SELECT ON memd.migrations, memd.projects, memd.members TO PUBLIC;
GRANT SELECT, INSERT, UPDATE, DELETE ON memd.heads TO PUBLIC;
GRANT SELECT, INSERT, DELETE ON memd.records TO PUBLIC;

CREATE FUNCTION memd.projects_as(VARIADIC roles text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT project FROM memd.members WHERE member = session_user AND role = ANY (roles)
$$;

CREATE FUNCTION memd.set_role(project_name text, member_name text, new_role text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_has_role(session_user, current_user, 'MEMBER') THEN
    INSERT INTO memd.projects (name) VALUES (project_name) ON CONFLICT DO NOTHING;
  ELSIF NOT EXISTS (SELECT 1 FROM memd.members m
      WHERE m.project = project_name AND m.member = session_user AND m.role = 'maintainer') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only a maintainer of the project grants roles in it';
  END IF;
  IF new_role = 'none' THEN
    DELETE FROM memd.members m WHERE m.project = project_name AND m.member = member_name;
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = member_name) THEN
    RAISE undefined_object USING MESSAGE = format('the server has no user %I', member_name);
  END IF;
  INSERT INTO memd.members (project, member, role, granted_by)
  VALUES (project_name, member_name, new_role, session_user)
  ON CONFLICT (project, member)
  DO UPDATE SET role = excluded.role, granted_by = excluded.granted_by, granted_at = now();
END
$$;

ALTER TABLE memd.projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.members ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE memd.records ENABLE ROW LEVEL SECURITY;

CREATE POLICY members_see ON memd.projects FOR SELECT
  USING (name IN (SELECT memd.projects_as('reader', 'writer', 'maintainer')));
CREATE POLICY members_see ON memd.members FOR SELECT
  USING (project IN (SELECT memd.projects_as('reader', 'writer', 'maintainer')));

-- Who is a member no more still sees, and may take away, what is their own.
CREATE POLICY members_read ON memd.heads FOR SELECT
  USING (author = session_user OR project IN (SELECT memd.projects_as('reader', 'writer', 'maintainer')));
CREATE POLICY writers_begin ON memd.heads FOR INSERT
  WITH CHECK (author = session_user AND project IN (SELECT memd.projects_as('writer', 'maintainer')));
CREATE POLICY writers_continue ON memd.heads FOR UPDATE
  USING (author = session_user)
  WITH CHECK (author = session_user AND project IN (SELECT memd.projects_as('writer', 'maintainer')));
CREATE POLICY authors_and_maintainers_remove ON memd.heads FOR DELETE
  USING (author = session_user OR project IN (SELECT memd.projects_as('maintainer')));

CREATE POLICY members_read ON memd.records FOR SELECT
  USING (author = session_user OR project IN (SELECT memd.projects_as('reader', 'writer', 'maintainer')));
CREATE POLICY writers_write ON memd.records FOR INSERT
  WITH CHECK (author = session_user AND project IN (SELECT memd.projects_as('writer', 'maintainer')));
CREATE POLICY authors_remove ON memd.records FOR DELETE USING (author = session_user);
