"""Every setting with its default, as one frozen tree. config.example.toml says the same, checked.

Each room receives only its branch. An unknown key or a bad value is a ConfigError that names the
key; memd never starts with half a configuration. Not here: where the file lies (paths.py).
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memd.errors import ConfigError
from memd.paths import LINE_BYTES_MAX

_BYTES_MAX = 1024 * 1024

Positive = Annotated[int, Field(gt=0)]
Ratio = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CaptureConfig(_Section):
    """What is kept of what agents say."""

    enabled: bool = True
    """Whether anything is, but for what `memd import` brings; `memd switch` says it for one place."""
    field_bytes: Positive = 32_768
    """A longer text field keeps its head and tail, with the cut said."""
    keep_reads: bool = False
    """Whether to keep what Read, Glob and Grep returned; else its path, size and what it imports."""
    ignore_paths: tuple[str, ...] = (
        ".git/", "node_modules/", "bower_components/", "vendor/", ".venv/", "venv/", "__pycache__/",
        "dist/", "build/", "out/", "target/", "coverage/", ".next/", ".tox/", ".mypy_cache/",
        ".ruff_cache/", ".pytest_cache/", "*.min.js", "*.min.css", "*.map", "*.lock", "*-lock.json",
        "*-lock.yaml",
    )  # fmt: skip
    """.gitignore-like patterns; tool events on such a path are counted and dropped. `!` keeps."""
    ignore_tools: tuple[str, ...] = ("mcp__memd__*", "mcp__plugin_memd_*", "mem_*")
    """Patterns of tool names that are dropped. memd's own tools always are."""
    entropy: bool = True
    """Whether long random-looking words are redacted, beside the named patterns."""


class DistillConfig(_Section):
    """How events become summaries."""

    writer: Literal["none", "ollama"] = "none"
    """Who writes titles and facts: nobody but the rules; or, behind them, a chat model at `engines.url`
    improves what they wrote. Nothing waits for it, and what it cannot prove from the record is refused."""
    writer_model: str = "qwen2.5:3b"
    """A choice: small, quick and good at this. Any instruct model does that Ollama can hold to a JSON
    schema; `ollama pull` it first."""
    writer_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """How long one reply may take; past it the rules' own text stays."""
    writer_daily: Annotated[int, Field(ge=0, le=100_000)] = 200
    """At most so many replies a day (UTC); a turn takes one, or two if the first cannot be used."""
    idle_s: Positive = 600
    """An episode without an end is closed after this long without an event."""
    interval_s: Positive = 30
    """How often to look for idle episodes."""
    body_characters: Positive = 8_000
    """A summary's body is cut there."""
    task_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    """A task expires after so many days, unless whoever states it says how long; 0: never."""


class IndexConfig(_Section):
    """How summaries become searchable."""

    passage_tokens: Positive = 400
    batch: Positive = 200
    """Summaries indexed per transaction."""


class EnginesConfig(_Section):
    """Which models turn text into vectors, and text into text."""

    embedder: Literal["auto", "ollama", "openai", "hashing"] = "auto"
    """`auto`: hashing at once, and Ollama beside it whenever it answers and has the model. `ollama` and
    `openai` (any server with /v1/embeddings) say so in the status when it does not. `hashing`: no model."""
    url: str = "http://127.0.0.1:11434"
    """Where the model is served. Another machine only with `remote = true`: what is remembered goes there."""
    remote: bool = False
    model: str = "nomic-embed-text"
    dimensions: Annotated[int, Field(ge=0, le=4_096)] = 0
    """Cut vectors to their first so many values, for models trained for it (768, 512, 256 or 128 for
    nomic-embed-text); 0: all of them."""
    keep_alive: str = "30m"
    """How long Ollama keeps the model in memory after a call."""
    query_s: Annotated[float, Field(gt=0, le=10)] = 0.3
    """How long a question's vector may take; past it the hashing space answers alone."""
    batch_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    batch: Annotated[int, Field(ge=1, le=64)] = 32
    """Texts in one request."""
    concurrency: Annotated[int, Field(ge=1, le=8)] = 2
    """Requests at a time; questions come first."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable with the key that `openai` sends; none is sent if it is not set."""
    active_from: Ratio = 0.95
    """A learned space leads once so much of what is remembered has a vector in it; until then both
    spaces are asked."""


class ConsolidateConfig(_Section):
    """How near-duplicates are tidied away."""

    enabled: bool = True
    interval_s: Positive = 300
    threshold: Ratio = 0.95
    """Cosine from which two summaries are a candidate pair."""
    batch: Positive = 500
    """New summaries looked at per tick."""


class RetentionConfig(_Section):
    """What is kept for how long. Prompts, answers and memories stay, but for what is said here."""

    enabled: bool = True
    """Whether old things are tidied by themselves, daily; a day before the first time a preview is shown."""
    events_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    """Older tool events are cut down to what memories cite of them; 0: never."""
    expired_days: Annotated[int, Field(ge=0, le=36_500)] = 365
    """Memories that expired so long ago go; 0: never."""
    archive_days: Annotated[int, Field(ge=0, le=36_500)] = 0
    """Captured memories older than this that no answer ever returned, and whose quality is below
    `archive_quality`, are hidden; `include_superseded` still finds them. 0: never."""
    archive_quality: Ratio = 0.3
    size_bytes: Annotated[int, Field(ge=0)] = 2 * 1024**3
    """The vault's ceiling: `memd status` warns at 80 % of it; beyond, tool events older than two weeks
    are cut down, too. No memory goes for it. 0: none."""


class RecallConfig(_Section):
    """How a question is answered."""

    profile: str = "memd"
    k: Annotated[int, Field(ge=1, le=100)] = 5
    """How many hits, unless the question or its profile says."""
    pool: Annotated[int, Field(ge=1, le=1000)] = 50
    """Candidates that each leg hands on, unless the profile says."""
    rerank_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """How long a model may take to look at the hits again, where a profile has `rerank = "model"`."""
    rerank_model: str = ""
    """The chat model at `engines.url` that those profiles ask, such as `qwen2.5:3b`; empty: none, and
    they answer without it and say so."""


class InjectConfig(_Section):
    """What an agent is shown unasked. `memd switch` says it for one project or session."""

    session_start: bool = True
    """Whether a session begins with an index of what is known about its project."""
    prompt: bool = True
    """Whether a prompt brings what clearly fits it."""
    tokens: Annotated[int, Field(ge=100, le=2_500)] = 1_000
    """At most so many at the start of a session, at four characters each."""
    prompt_hits: Annotated[int, Field(ge=1, le=10)] = 3
    prompt_s: Annotated[float, Field(gt=0, le=5)] = 0.15
    """How long looking may take; past it nothing is shown, and the prompt goes on.
    More than 0.3 is of no use: the hook itself gives up after 0.4."""
    session_s: Annotated[float, Field(gt=0, le=5)] = 0.2
    """The same at the start of a session."""
    floor: Ratio = 0.4
    """The share of a prompt's words, by rarity, that the best hit must hold."""
    ratio: Ratio = 0.5
    """A further hit is shown if its score is at least this part of the best one's."""


class ServeConfig(_Section):
    """The front door."""

    line_bytes: Positive = LINE_BYTES_MAX
    """The longest message that the daemon reads. More than 4 MiB counts as 4 MiB."""
    connections: Positive = 1_024
    min_event_s: Annotated[float, Field(gt=0, le=30)] = 2.0
    """How long a search waits for the event that it was asked to include."""
    drain_s: Annotated[float, Field(ge=0, le=30)] = 5.0
    """How long answers in flight may take after a client has closed its side."""


class DaemonConfig(_Section):
    """The roof."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_bytes: Positive = 5 * 1024 * 1024
    """The log is turned over at this size; one older log is kept."""
    stop_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """How long work in flight may take after SIGTERM."""


class Config(_Section):
    """Everything that can be set."""

    capture: CaptureConfig = CaptureConfig()
    distill: DistillConfig = DistillConfig()
    index: IndexConfig = IndexConfig()
    engines: EnginesConfig = EnginesConfig()
    consolidate: ConsolidateConfig = ConsolidateConfig()
    retention: RetentionConfig = RetentionConfig()
    recall: RecallConfig = RecallConfig()
    profiles: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Own retrieval profiles: `[profiles.mine] base = "memd"`, then what differs."""
    inject: InjectConfig = InjectConfig()
    serve: ServeConfig = ServeConfig()
    daemon: DaemonConfig = DaemonConfig()


def parse_config(text: str, origin: str) -> Config:
    """The configuration in a TOML text; a ConfigError names the file and the key that is wrong."""
    try:
        return Config.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        said = "there is no such key" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(f"{origin}: {key}: {said}") from error
    except ValueError as error:  # more than TOMLDecodeError: a number of thousands of digits
        raise ConfigError(f"{origin} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{origin} is nested too deeply to be read") from error


def load_config(path: str) -> Config:
    """The configuration in a file, or the defaults if there is none."""
    try:
        return parse_config(_text(path), path)
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _text(path: str) -> str:
    """What stands in a file of a sane size; a pipe is not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no file")
        raw = file.read(_BYTES_MAX + 1)
    if len(raw) > _BYTES_MAX:
        raise OSError(f"it is larger than {_BYTES_MAX // 1024} KiB")
    return raw.decode("utf-8")
