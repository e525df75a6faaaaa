"""What a diff shows of settings: names with a literal beside them, in code and configuration of any kind."""

from memd.distill.edits import FileEdit, read_changes
from tests.tables import every_row


def changes(path, *edits):
    """(key, was, now) of each setting that the edits change."""
    made = [FileEdit(1, 1, path, old, new, is_whole_file=not old) for old, new in edits]
    return [(".".join(one.key), one.was, one.now) for one in read_changes(made, str)]


@every_row(
    ("path", "old", "new", "expected"),
    [
        ("a.py", "LIMIT = 10", "LIMIT = 30  # was 10", ("LIMIT", "10", "30")),
        ("a.py", "class A:\n    ttl: int = 5", "class A:\n    ttl: int = 6", ("class A.ttl", "5", "6")),
        ("a.py", "def get(url, wait=3):", "def get(url, wait=5):", ("def get.wait", "3", "5")),
        ("a.py", "c = Client(wait=3, tries=3)", "c = Client(wait=5, tries=3)", ("c.wait", "3", "5")),
        ("a.py", "W = timedelta(days=3)", "W = timedelta(days=5)", ("W", "timedelta(days=3)", "timedelta(days=5)")),
        ("a.py", 'P = os.getenv("PORT", 8080)', 'P = os.getenv("PORT", 9090)', ("P.PORT", "8080", "9090")),
        ("a.py", 'add("--jobs", default=2)', 'add("--jobs", default=4)', ("add.--jobs.default", "2", "4")),
        ("a.ts", "export const MAX: number = 3;", "export const MAX: number = 5;", ("MAX", "3", "5")),
        ("a.js", "const x = {\n  port: 80,\n}", "const x = {\n  port: 81,\n}", ("const x.port", "80", "81")),
        ("a.js", "const P = process.env.PORT || 80;", "const P = process.env.PORT || 81;", ("P.PORT", "80", "81")),
        ("a.go", "\twait := 5 * time.Second", "\twait := 9 * time.Second", ("wait", "5 * time.Second", "9 * time.Second")),
        ("a.rs", "const MAX: usize = 1_000;", "const MAX: usize = 2_000;", ("MAX", "1000", "2000")),
        ("A.java", "  private static final int MAX = 3;", "  private static final int MAX = 5;", ("MAX", "3", "5")),
        ("a.c", "#define MAX 64", "#define MAX 128", ("MAX", "64", "128")),
        ("a.php", "  'wait' => 30,", "  'wait' => 60,", ("wait", "30", "60")),
        ("a.ex", "@timeout 5000", "@timeout 9000", ("timeout", "5000", "9000")),
        ("a.clj", "(def limit 30)", "(def limit 60)", ("limit", "30", "60")),
        ("a.toml", "[srv]\nport = 1", "[srv]\nport = 2", ("srv.port", "1", "2")),
        ("a.yaml", "srv:\n  port: 1\nweb:\n  port: 1", "srv:\n  port: 2\nweb:\n  port: 1", ("srv.port", "1", "2")),
        ("a.json", '{\n  "srv": {\n    "port": 1\n  }\n}', '{\n  "srv": {\n    "port": 2\n  }\n}', ("srv.port", "1", "2")),
        (".env", "PORT=1", "PORT=2", ("PORT", "1", "2")),
        ("a.sh", "export PORT=${PORT:-1}", "export PORT=${PORT:-2}", ("PORT.PORT", "1", "2")),
        ("a.sh", "serve app --jobs 4", "serve app --jobs 8", ("serve.--jobs", "4", "8")),
        ("Dockerfile", "FROM python:3.11", "FROM python:3.12", ("python", "3.11", "3.12")),
        ("Dockerfile", "EXPOSE 80", "EXPOSE 81", ("EXPOSE", "80", "81")),
        ("Dockerfile", 'CMD ["serve", "--jobs", "4"]', 'CMD ["serve", "--jobs", "8"]', ("serve.--jobs", "4", "8")),
        ("package.json", '  "react": "^18.2.0",', '  "react": "^19.0.0",', ("react", "^18.2.0", "^19.0.0")),
        ("package.json", '"up": "run --a 1 --b 2"', '"up": "run --a 1 --b 3"', ("up.run.--b", "2", "3")),
        ("requirements.txt", "httpx==0.26", "httpx==0.27", ("httpx", "0.26", "0.27")),
        ("Cargo.toml", 'serde = { version = "1.0", features = [] }', 'serde = { version = "1.1", features = [] }', ("serde.version", "1.0", "1.1")),
        ("go.mod", "go 1.21", "go 1.22", ("go", "1.21", "1.22")),
        ("pom.xml", "<version>1.2</version>", "<version>1.3</version>", ("version", "1.2", "1.3")),
        ("ci.yml", "  - uses: actions/checkout@v3", "  - uses: actions/checkout@v4", ("actions/checkout", "v3", "v4")),
        ("compose.yml", '  ports:\n    - "80:90"', '  ports:\n    - "81:90"', ("ports.:90", "80", "81")),
        ("nginx.conf", "  listen 80;", "  listen 81;", ("listen", "80", "81")),
        (".nvmrc", "18", "20", ("version", "18", "20")),
        ("haproxy.cfg", "    timeout client 10s", "    timeout client 30s", ("timeout client", "10s", "30s")),
        ("build.gradle", "    targetSdkVersion 33", "    targetSdkVersion 34", ("targetSdkVersion", "33", "34")),
        ("CMakeLists.txt", "set(CMAKE_CXX_STANDARD 17)", "set(CMAKE_CXX_STANDARD 20)", ("CMAKE_CXX_STANDARD", "17", "20")),
        ("a.cpp", "constexpr int kMax{3};", "constexpr int kMax{5};", ("kMax", "3", "5")),
        ("a.py", "@retry(stop=stop_after_attempt(3))", "@retry(stop=stop_after_attempt(5))", ("@retry.stop_after_attempt", "3", "5")),
        ("a.tsx", "const [rows, setRows] = useState<number>(8)", "const [rows, setRows] = useState<number>(9)", ("rows", "8", "9")),
        ("a.py", "width, height = 80, 24", "width, height = 90, 24", ("width", "80", "90")),
        ("a.js", "const { size = 10, page = 1 } = props;", "const { size = 20, page = 1 } = props;", ("size", "10", "20")),
        ("a.cs", "public int Max { get; set; } = 3;", "public int Max { get; set; } = 4;", ("Max", "3", "4")),
        ("a.go", 'flag.IntVar(&n, "jobs", 4, "how many")', 'flag.IntVar(&n, "jobs", 8, "how many")', ("jobs", "4", "8")),
        ("crontab", "*/10 * * * *  run  all", "@daily run all", ("run all", "*/10 * * * *", "@daily")),
        ("etc/cron.d/a", "0 2 * * * root a", "0 3 * * * root a", ("root a", "0 2 * * *", "0 3 * * *")),
        ("a.yaml", "python: ['3.11']", "python: ['3.12']", ("python", "3.11", "3.12")),
        ("a.yaml", "hosts:\n  - debian-11", "hosts:\n  - debian-12", ("hosts", "debian-11", "debian-12")),
        ("a.sql", "ALTER TABLE a ALTER COLUMN b SET DEFAULT 'x';", "ALTER TABLE a ALTER COLUMN b SET DEFAULT 'y';", ("a.b", "x", "y")),
        ("a.sql", "CREATE TABLE a (\n  b VARCHAR(8),", "CREATE TABLE a (\n  b VARCHAR(9),", ("CREATE TABLE a.b.varchar", "8", "9")),
        ("Dockerfile", "HEALTHCHECK --interval=5s CMD a -f b", "HEALTHCHECK --interval=9s CMD a -f b", ("HEALTHCHECK.--interval", "5s", "9s")),
    ],
)  # fmt: skip
def test_a_setting_that_a_diff_gives_another_value_is_read(path, old, new, expected):
    assert changes(path, (old, new)) == [expected]


@every_row(
    ("path", "old", "new"),
    [
        ("a.py", "# LIMIT = 3", "# LIMIT = 4"),
        ("a.py", '"""\nLIMIT = 3\n"""', '"""\nLIMIT = 4\n"""'),
        ("a.js", "/*\n * limit = 3\n */", "/*\n * limit = 4\n */"),
        ("a.py", 'HOSTS = ["a"]', 'HOSTS = ["a", "b"]'),
        ("a.yaml", "hosts:\n  - a", "hosts:\n  - a\n  - b"),
        ("a.py", "total = add(a, b)", "total = add(a, c)"),
        ("a.py", "if tries > 3:", "if tries > 4:"),
        ("a.py", "LIMIT = 3", "LIMIT    = 3"),
        ("a.py", "LEVEL = 'x'", 'LEVEL = "x"'),
        ("a.py", "LIMIT = 3\nA = 1", "A = 1\nLIMIT = 3"),
        ("README.md", "port: 80", "port: 81"),
        ("a.sql", "SELECT * FROM a WHERE n = 5;", "SELECT * FROM a WHERE n = 8;"),
        ("crontab", "# 0 2 * * * a", "# 0 3 * * * a"),
        ("a.yaml", "hosts:\n  - a\n  - b", "hosts:\n  - a\n  - c"),
        ("poetry.lock", 'version = "1"', 'version = "2"'),
        ("a.yaml", "- max: 1\n- max: 2", "- max: 1\n- max: 3"),
    ],
)
def test_what_sets_nothing_else_is_no_change(path, old, new):
    assert changes(path, (old, new)) == []


def test_only_what_several_edits_come_to_in_the_end_is_a_change():
    there, back = ("LIMIT = 1", "LIMIT = 2"), ("LIMIT = 2", "LIMIT = 1")
    assert changes("a.py", there, back) == []
    assert changes("a.py", there, ("LIMIT = 2", "LIMIT = 3")) == [("LIMIT", "1", "3")]
    assert changes("a.py", ("LIMIT = 1", "pass"), ("x", "LIMIT = 3")) == [("LIMIT", "1", "3")]


def test_all_of_a_file_that_is_written_is_set_unless_it_is_data():
    assert changes("a.toml", ("", "[a]\nport = 1\n[b]\nport = 2")) == [
        ("a.port", "", "1"),
        ("b.port", "", "2"),
    ]
    assert changes("a.yaml", ("", "\n".join(f"key{n}: {n}" for n in range(300)))) == []


def test_an_element_belongs_to_the_artifact_that_is_named_beside_it():
    pom = "<artifactId>{}</artifactId>\n<version>{}</version>"
    assert changes("pom.xml", (pom.format("a", 1), pom.format("a", 2))) == [("a.version", "1", "2")]
    assert changes("pom.xml", (pom.format("b", 2), pom.format("b", 3))) == [("b.version", "2", "3")]
