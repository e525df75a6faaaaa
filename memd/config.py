"""Settings and defaults, as one frozen tree; scripts/docs-check writes config.example.toml from it.

Each package receives only its section. An unknown key or a bad value is a ConfigError that names the key.
What was a setting once stands in `RETIRED`: config.toml may still name it, its value is ignored. Some of those
are fields yet, so that code can construct other values; in the daemon of a test or a benchmark the environment
variable MEMD_TUNING sets them: `MEMD_TUNING='{"distill.idle_s": 1}'`.
"""

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from memd.errors import ConfigError

_BYTES_MAX = 1024 * 1024

Positive = Annotated[int, Field(gt=0, le=1_000_000_000)]
Ratio = Annotated[float, Field(ge=0, le=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CaptureConfig(_Settings):
    """Events that are captured, and how much of them."""

    enabled: bool = True
    """Whether to capture events. `memd import` works anyway; `memd switch` sets it for one project or session."""
    read_transcript: bool = True
    """Whether to read, in the transcripts of live sessions, what hooks do not deliver: what the agent says in the
    middle of its turn, what you say when you refuse a tool call, and titles."""
    keep_reads: bool = False
    """Whether to store what Read, Glob and Grep returned; else only its path, size, imports and a fingerprint."""
    ignore_paths: tuple[str, ...] = (
        ".git/", "node_modules/", "bower_components/", "vendor/", ".venv/", "venv/", "__pycache__/",
        "dist/", "build/", "out/", "target/", "coverage/", ".next/", ".tox/", ".mypy_cache/",
        ".ruff_cache/", ".pytest_cache/", "*.min.js", "*.min.css", "*.map", "*.lock", "*-lock.json",
        "*-lock.yaml",
    )  # fmt: skip
    """Patterns as in .gitignore; tool events on matching paths are dropped. `!` excludes a path from that."""
    ignore_tools: tuple[str, ...] = ("mcp__memd__*", "mcp__plugin_memd_*", "mem_*")
    """Patterns of tools whose events are dropped. memd's own tools always are."""
    entropy: bool = True
    """Whether to redact long random-looking words, in addition to known forms of secrets."""


class DistillConfig(_Settings):
    """Distilling events into summaries."""

    writer: Literal["none", "ollama", "command"] = "none"
    """What writes titles and facts: rules alone (`none`), or in addition, in the background, a chat model at
    `engines.url` (`ollama`) or a program (`command`). What they cannot prove from the events is refused."""
    writer_model: str = "qwen2.5:3b"
    """The chat model of `ollama`. Any instruct model that follows a JSON schema works; `ollama pull` it first."""
    writer_command: tuple[str, ...] = ()
    """The program of `command` with its arguments: it reads a prompt on stdin and prints JSON. No shell reads
    this line. What it may do with what it reads is up to it: give an agent no tools (docs/writer.md)."""
    writer_environment: tuple[str, ...] = ()
    """Names of environment variables that the program gets besides paths, language and proxies, such as
    that of an API key."""
    writer_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds that one reply may take; after that the rules' text stays, and the program is killed."""
    writer_daily: Annotated[int, Field(ge=0, le=100_000)] = 200
    """Replies a day (UTC), at most; a turn takes one, or two if the first is unusable."""
    task_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    """Days after which a task expires, unless it says when; 0: never."""

    # No settings any more (RETIRED).
    idle_s: Positive = 600
    """Seconds without an event after which an open episode is closed: longer than a test suite runs, and a search
    that must include an event does not wait for it."""
    interval_s: Positive = 30
    """Seconds between two checks for idle episodes: hardly late, beside `idle_s`."""

    @field_validator("writer_command")
    @classmethod
    def _check_command(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if command and not command[0].strip():
            raise PydanticCustomError("command", "the first word is to be a program")
        return command

    @model_validator(mode="after")
    def _check_writer(self) -> Self:
        if self.writer == "command" and not self.writer_command:
            raise PydanticCustomError("command", "writer_command: name the program to run")
        return self


class EnginesConfig(_Settings):
    """Models that turn text into vectors, and text into text."""

    embedder: Literal["auto", "ollama", "openai", "local", "hashing"] = "auto"
    """`auto`: hashing, and in addition Ollama whenever it answers and has the model, else the model of `memd model add`
    if there is one. `ollama`, `openai` (any server with /v1/embeddings) and `local` (the model of `memd model add`,
    without a server): the status reports when it does not answer. `hashing`: no model."""
    url: str = "http://127.0.0.1:11434"
    """The model server. Another machine needs `remote = true`, because memories are sent to it."""
    remote: bool = False
    model: str = "nomic-embed-text"
    dimensions: Annotated[int, Field(ge=0, le=4_096)] = 0
    """Use only the first dimensions of a vector, for models trained for it (768, 512, 256 or 128 for
    nomic-embed-text); 0: all."""
    query_s: Annotated[float, Field(gt=0, le=10)] = 0.3
    """Seconds that a query's vector may take; after that the hashing space answers alone."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable with the API key for `openai`; if it is not set, no key is sent."""

    # No settings any more (RETIRED).
    batch: Annotated[int, Field(ge=1, le=64)] = 32
    """Texts in one request. A slow server gets fewer by itself (`AdaptiveBatchSize`)."""
    concurrency: Annotated[int, Field(ge=1, le=8)] = 2
    """Requests at a time: one of the backfill, and a query that need not wait for it."""


class ConsolidateConfig(_Settings):
    """Superseding near-duplicates."""

    enabled: bool = True

    # No settings any more (RETIRED).
    interval_s: Positive = 300
    """Seconds between two runs; a backlog does not wait for it."""
    threshold: Ratio = 0.95
    """Cosine from which two summaries are compared; whether one is superseded is judged by their words."""
    batch: Positive = 500
    """New summaries checked per run, so that the index is not locked for long."""


class RetentionConfig(_Settings):
    """Retention of data. Prompts, answers and memories stay unless a setting here says otherwise."""

    enabled: bool = True
    """Whether to apply retention daily; a preview is shown a day before the first time."""
    events_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    """Days after which tool events are reduced to what memories cite of them; 0: never."""
    expired_days: Annotated[int, Field(ge=0, le=36_500)] = 365
    """Days after its expiry that a memory is deleted; 0: never."""
    archive_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Days after which captured memories that no answer ever returned, with a quality below 0.3,
    are hidden; `include_superseded` still finds them. 0: never."""
    size_bytes: Annotated[int, Field(ge=0)] = 2 * 1024**3
    """Size limit of the vault: `memd status` warns at 80 % of it; above it, tool events older than two weeks are
    reduced, too. No memory is deleted for it. 0: none."""


class RecallConfig(_Settings):
    """Answering a search."""

    profile: str = "memd"
    rerank_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """Seconds that a model may take to re-rank hits, where a profile has `rerank = "model"`."""
    rerank_model: str = ""
    """The chat model at `engines.url` for those profiles, such as `qwen2.5:3b`; empty: none, and they answer
    without it and say so."""


class InjectConfig(_Settings):
    """Context that agents receive automatically. `memd switch` sets it for one project or session."""

    session_start: bool = True
    """Whether a session begins with an index of what is known about its project."""
    prompt: bool = True
    """Whether a prompt receives memories that clearly match it."""
    rules: bool = True
    """Whether an agent is told of a call that breaks a rule of yours (docs/rules.md); one that you enforce is kept."""
    tokens: Annotated[int, Field(ge=100, le=2_500)] = 600
    """Tokens at the start of a session, at most, at four characters each."""
    session_tokens: Annotated[int, Field(ge=100, le=20_000)] = 1_500
    """Tokens in one session, at most, of all that it is told unasked: at its start, with its prompts, at files, after failures,
    what it is asked to note, and what its subagents are told. A compaction begins anew."""
    files: bool = True
    """Whether a session is told what holds for a file, directory or command alone when it first reads, changes or runs it."""
    failures: bool = True
    """Whether a session is told at once what fixed a failure that happened here before."""
    subagents: bool = True
    """Whether a subagent is told the rules that apply to what it was asked to do."""

    # No settings any more (RETIRED).
    prompt_hits: Annotated[int, Field(ge=1, le=10)] = 3
    """Memories with one prompt, at most; `session_tokens` says how much all of them may take."""
    prompt_s: Annotated[float, Field(gt=0, le=5)] = 0.15
    """Seconds that the search for a prompt may take; after that nothing is injected. The hook stops waiting
    after 0.4, and a person notices more."""
    session_s: Annotated[float, Field(gt=0, le=5)] = 0.2
    """The same at the start of a session."""
    floor: Ratio = 0.4
    """The share of a prompt's words, weighted by rarity, that the best hit must contain. With `ratio` it is
    tuned on sets of questions: less tells what does not help."""
    ratio: Ratio = 0.5
    """A further hit is injected if its score is at least this share of the best one's."""


class NotesConfig(_Settings):
    """Notes that agents are asked for: only the agent that took part understands an exchange."""

    ask: Literal["prompt", "stop", "off"] = "prompt"
    """Whether a line asks, now and then, to note what will hold: with a prompt; at the end of a turn, where
    Claude Code then goes on for one more short turn; or never."""
    follow: bool = True
    """Whether the notes that Claude Code and Codex keep themselves are followed where they lie (docs/notes.md)."""


class AgentsConfig(_Settings):
    """Changes that agents may make over MCP and with commands in their shell, beyond what they said themselves in their own project."""

    other_projects: bool = False
    """Whether agents may write to `global` and to projects in which they do not run."""
    user_memories: bool = False
    """Whether agents may judge, unpin and forget what the user said, as the user can: `memd judge`, `memd pin`,
    `memd forget`. What an agent remembers by a tool stays an agent's word; what it runs in its shell is then yours."""


class TeamConfig(_Settings):
    """A team's memory on PostgreSQL. What is shared is chosen per project: `memd team join`."""

    url: str = ""
    """The team's server, such as `postgresql://ann@db.example.com/team?sslmode=verify-full`; empty: none. Keep the
    password in ~/.pgpass. Memories of joined projects are sent there."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url and not url.startswith(("postgresql://", "postgres://")):
            raise PydanticCustomError("url", "it must begin with postgresql://")
        return url


class SyncConfig(_Settings):
    """The same memory on several machines of yours (docs/machines.md)."""

    place: str = ""
    """What `memd sync` and the daemon sync with: a folder, a git repository or `ssh://host/path`; empty: nothing."""
    interval_s: Annotated[int, Field(ge=0, le=86_400)] = 300
    """Seconds between two syncs of the daemon; 0: only `memd sync` does it."""
    name: str = ""
    """What this device is called; empty: the machine's name."""
    recipients: tuple[str, ...] = ()
    """The age public keys (age1…) of all your machines, this one's too: what is written is encrypted for them, what is
    not encrypted is refused. Needs the extra `age`; `memd sync --new-key` makes a machine's key. Empty: no encryption."""
    identity: str = ""
    """The file with this machine's age key, mode 0600; empty: age.key beside this file."""

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if self.identity and not self.recipients:
            raise PydanticCustomError("identity", "identity is of no use without recipients")
        return self


class DaemonConfig(_Settings):
    """The process."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"

    # No setting any more (RETIRED).
    log_bytes: Positive = 5 * 1024 * 1024
    """Bytes after which the log is rotated; one older log is kept: weeks of work, and little of any disk."""


class Config(_Settings):
    """All settings."""

    capture: CaptureConfig = CaptureConfig()
    distill: DistillConfig = DistillConfig()
    engines: EnginesConfig = EnginesConfig()
    consolidate: ConsolidateConfig = ConsolidateConfig()
    retention: RetentionConfig = RetentionConfig()
    recall: RecallConfig = RecallConfig()
    profiles: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Your own retrieval profiles: `[profiles.mine] base = "memd"`, then the differences."""
    inject: InjectConfig = InjectConfig()
    notes: NotesConfig = NotesConfig()
    agents: AgentsConfig = AgentsConfig()
    team: TeamConfig = TeamConfig()
    sync: SyncConfig = SyncConfig()
    daemon: DaemonConfig = DaemonConfig()


RETIRED: Mapping[str, str] = {
    "capture.field_bytes": "32 KiB of a text field are stored",
    "distill.idle_s": "an episode ends after ten minutes without an event",
    "distill.interval_s": "idle episodes are looked for every 30 seconds",
    "distill.body_characters": "a memory's body has at most 8,000 characters",
    "index.passage_tokens": "a passage has at most 400 words",
    "index.batch": "200 memories are indexed per transaction",
    "engines.keep_alive": "Ollama keeps a model for 30 minutes after a call; `ollama stop` unloads it",
    "engines.batch_s": "a batch of texts may take a minute",
    "engines.batch": "at most 32 texts are sent at once, fewer if the server is slow",
    "engines.concurrency": "two requests are sent at a time, queries first",
    "engines.active_from": "a model's vectors lead once 95 % of the passages have one",
    "consolidate.interval_s": "near-duplicates are looked for every five minutes",
    "consolidate.threshold": "memories are compared from a cosine of 0.95; `consolidate.enabled = false` hides none",
    "consolidate.batch": "500 memories are checked per run",
    "retention.archive_quality": "`archive_days` is for memories with a quality below 0.3",
    "recall.k": "a search has 5 hits; a query's `k`, or that of a profile of yours, says otherwise",
    "recall.pool": "each retriever brings 50 candidates; `pool` of a profile of yours says otherwise",
    "inject.holdout": "no session is told nothing by chance, to compare with others",
    "inject.prompt_hits": "a prompt gets at most 3 memories; `inject.session_tokens` bounds them all",
    "inject.prompt_s": "the search for a prompt may take 0.15 seconds",
    "inject.session_s": "what a session begins with may take 0.2 seconds",
    "inject.session_wait_s": "the hooks of a session may be held up for ten seconds together",
    "inject.floor": "the best hit must contain 40 % of a prompt's words, by weight",
    "inject.ratio": "a further hit must score half as much as the best one",
    "team.poll_s": "the server is looked at every minute, where it does not tell by itself that a teammate wrote something",
    "serve.line_bytes": "a message has at most 4 MiB",
    "serve.connections": "1,024 connections are served at a time",
    "serve.min_event_s": "a search waits two seconds for the event that it must include",
    "serve.drain_s": "answers have five seconds after a client has closed its side",
    "daemon.log_bytes": "the log is rotated after 5 MiB",
    "daemon.stop_s": "work in progress has two seconds when the daemon stops",
}
"""What was a setting once → what holds instead."""
_RETIRED_TABLES = sorted({name.split(".")[0] for name in RETIRED} - Config.model_fields.keys())


def parse_config(text: str, origin: str, tuning: str = "") -> Config:
    """Parse a TOML text; a ConfigError names the file and the wrong key. `tuning`: the value of MEMD_TUNING."""
    tables = _parse_toml(text, origin)
    _remove_retired(tables)
    config = _validate(tables, origin)
    return _validate(_tune(tables, tuning), "MEMD_TUNING") if tuning else config


def _validate(tables: dict[str, Any], origin: str) -> Config:
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        place = first["loc"]
        if len(place) == 1 and place[0] in _RETIRED_TABLES and isinstance(first["input"], dict):
            place = (*place, *list(first["input"])[:1])
        key = ".".join(str(part) for part in place)
        problem = "there is no such key" if first["type"] == "extra_forbidden" else first["msg"]
        if limits := _find_limits(first["loc"]):
            problem = f"{first['input']!r} is not possible: {limits}"
        raise ConfigError(f"{origin}: {key}: {problem}") from error


def _parse_toml(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # more than TOMLDecodeError: a number of thousands of digits
        raise ConfigError(f"{origin} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{origin} is nested too deeply to be read") from error


def _remove_retired(tables: dict[str, Any]) -> list[str]:
    """Take retired settings, and the tables that had no others, out of a file's; return the settings' names."""
    found = []
    for name in RETIRED:
        table, key = name.split(".")
        if isinstance(within := tables.get(table), dict) and key in within:
            del within[key]
            found.append(name)
    for table in _RETIRED_TABLES:
        if tables.get(table) == {}:
            del tables[table]
    return found


def _tune(tables: dict[str, Any], tuning: str) -> dict[str, Any]:
    """Set what is no setting to the values of a JSON object; a ConfigError if it names anything else."""
    try:
        given = json.loads(tuning)
    except ValueError as error:
        raise ConfigError(f"MEMD_TUNING is not valid JSON: {error}") from error
    if not isinstance(given, dict) or not RETIRED.keys() >= given.keys():
        raise ConfigError(
            f"MEMD_TUNING: an object of settings in memd.config.RETIRED, not {given!r}"
        )
    for name, value in given.items():
        table, key = name.split(".")
        tables.setdefault(table, {})[key] = value
    return tables


def describe_limits(field: FieldInfo) -> str:
    """Return between what a setting may be, in words; empty if it has no limits."""
    words = {
        Ge: ("at least", "ge"),
        Gt: ("more than", "gt"),
        Le: ("at most", "le"),
        Lt: ("less than", "lt"),
    }
    found = [
        f"{said[0]} {getattr(one, said[1]):,}"
        for one in field.metadata
        if (said := words.get(type(one))) is not None
    ]
    return ", ".join(found)


def _find_limits(place: tuple[int | str, ...]) -> str:
    """Return the limits of the setting at this place in the file."""
    settings: type[BaseModel] = Config
    for name in place[:-1]:
        field = settings.model_fields.get(str(name))
        if (
            field is None
            or not isinstance(field.annotation, type)
            or not issubclass(field.annotation, BaseModel)
        ):
            return ""
        settings = field.annotation
    last = settings.model_fields.get(str(place[-1])) if place else None
    return describe_limits(last) if last is not None else ""


def load_config(path: str, tuning: str = "") -> Config:
    """Read a file, or return the defaults if there is none. `tuning`: the value of MEMD_TUNING."""
    return parse_config(_read_text(path), path, tuning)


def explain_retired(path: str) -> list[str]:
    """Say of each setting in a file that is none any more what became of it."""
    return [
        f"{name} is no setting any more: {RETIRED[name]}"
        for name in _remove_retired(_parse_toml(_read_text(path), path))
    ]


def _read_text(path: str) -> str:
    """Read a file; empty if there is none. A ConfigError says why it cannot be read."""
    try:
        return _read_regular_file(path)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _read_regular_file(path: str) -> str:
    """Read a regular file of a sane size; a pipe does not block."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is not a regular file")
        raw = file.read(_BYTES_MAX + 1)
    if len(raw) > _BYTES_MAX:
        raise OSError(f"it is larger than {_BYTES_MAX // 1024} KiB")
    return raw.decode("utf-8")
