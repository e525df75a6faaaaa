"""Secrets sent into memd by every way, then looked for on its disk; and tricks at its socket and files.

    scripts/torture security [--only NAME …] [--salt N]

`redaction`: every secret of the corpus (secret_corpus.py) in every notation travels as a hook's
payload, through the spool, in a transcript, by mem_remember and in a markdown file; then the whole home,
with the write-ahead log, an export and a backup, is searched for it. The look-alikes travel too, and must
be in the export to the letter. The rest are the tricks of intrusion.py. Nothing is mocked;
another `--salt` draws other secrets of the same kinds. Ends with 1 if a promise was broken.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from memd import hook
from memd.capture.redact import redact
from tests.stress import secret_corpus as corpus
from tests.stress.intrusion import PARTS as TRICKS
from tests.stress.support import Trial, as_event, run_trials, worker

FALSE_MAX = 0.02
"""The share of the look-alikes that may be altered."""
_BATCH = 100
_HOOKS = 8
"""This many go through a hook's own process; the others through its `main`, which is the same code."""
_DEBUG = '[daemon]\nlog_level = "debug"\n'
Texts = Sequence[tuple[int, str]]
"""What travels: a number of its own, and the text."""


@dataclasses.dataclass
class Outcome:
    """What became of the corpus."""

    figures: str
    found: Counter[str]
    """Traces of secrets on the disk, by kind and file."""
    altered: Counter[str]
    """Look-alikes that redaction changes, by kind."""
    alike: Counter[str]
    missing: list[str]
    """Look-alikes that are not in the export as they were sent."""

    @property
    def is_redacted_well(self) -> bool:
        """Whether no secret was found, and few look-alikes were altered."""
        limit = FALSE_MAX * self.alike.total()
        return not self.found and max(self.altered.total(), len(self.missing)) <= limit


def _payload(number: int, text: str) -> dict[str, Any]:
    """A hook's payload with the text as prompt, as tool input or as tool response, in turn."""
    base = {"session_id": f"torture-{number % 7}", "cwd": "/home/dev/ledger"}
    if number % 3 == 0:
        prompt = {"prompt_id": f"p{number}", "prompt": text}
        return {**base, **prompt, "hook_event_name": "UserPromptSubmit"}
    is_given = number % 3 == 1
    return {
        **base, "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_use_id": f"toolu_{number:024d}",
        "tool_input": {"command": text if is_given else "make test"},
        "tool_response": {"stdout": "ok" if is_given else text, "stderr": "", "interrupted": False},
    }  # fmt: skip


def send_live(daemon: harness.Daemon, texts: Texts) -> None:
    """As hooks do while a daemon answers."""
    events = [as_event(_payload(*one)) for one in texts]
    with daemon.client() as client:
        for start in range(0, len(events), _BATCH):
            client.call("memd/capture", {"events": events[start : start + _BATCH]})


def send_by_spool(daemon: harness.Daemon, texts: Texts, hooks: int) -> None:
    """As hooks do while none answers; this many of them as processes of their own."""
    environ = {**daemon.environ, "MEMD_START": "0"}
    for n, one in enumerate(texts):
        raw = json.dumps(_payload(*one)).encode()
        if n < hooks:
            run(daemon, "hook", "Stop", given=raw)
            continue
        out, into = os.pipe()
        os.write(into, raw)  # shorter than a pipe
        os.close(into)
        hook.main([], out, environ)
        os.close(out)


def send_by_transcript(daemon: harness.Daemon, texts: Texts, outside: Path) -> None:
    """As `memd import claude-code` reads them."""
    folder = outside / "projects" / "-home-dev-ledger"
    folder.mkdir(parents=True)
    session = "5f83602c-e1e8-41f0-a1ef-754421747149"
    lines = [_transcript_line(number, text, session) for number, text in texts]
    (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(daemon, "import", "claude-code", str(folder))


def _transcript_line(number: int, text: str, session: str) -> str:
    head = {
        "parentUuid": None, "isSidechain": False, "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "timestamp": "2026-11-20T15:26:10.158Z", "cwd": "/home/dev/ledger", "sessionId": session, "version": "2.1.329",
    }  # fmt: skip
    if number % 2:
        said = {"role": "user", "content": text}
        return json.dumps({**head, "type": "user", "promptId": f"t{number}", "message": said})
    parts = [{"type": "text", "text": text}]
    message = {"role": "assistant", "id": f"msg_{number}", "content": parts}
    return json.dumps({**head, "type": "assistant", "message": message})


def send_by_remembering(daemon: harness.Daemon, texts: Texts) -> None:
    """As an agent's mem_remember."""
    with contextlib.closing(harness.Mcp(daemon.paths.socket)) as mcp:
        for number, text in texts:
            with contextlib.suppress(harness.Failed):
                mcp.tool("mem_remember", text=text, title=f"note {number}", project="global")


def send_by_markdown(daemon: harness.Daemon, texts: Texts, outside: Path) -> None:
    """As `memd import markdown` reads them."""
    folder = outside / "notes"
    folder.mkdir()
    for number, text in texts:
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\n{text}\n", "utf-8")
    run(daemon, "import", "markdown", str(folder))


def run(daemon: harness.Daemon, *words: str, given: bytes = b"") -> None:
    """Run a command, which must not fail."""
    done = daemon.run(*words, given=given)
    if done.returncode:
        raise SystemExit(f"memd {' '.join(words[:2])} failed: {done.stdout!r}{done.stderr!r}")


def search(home: str, traces: dict[str, str]) -> tuple[Counter[str], int, int]:
    """(traces found by kind and file, files searched, bytes searched). `traces`: trace → kind."""
    found: Counter[str] = Counter()
    files = size = 0
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".traces") as wanted:
        wanted.write("\n".join(traces) + "\n")
        wanted.flush()
        for path in (p for p in Path(home).rglob("*") if p.is_file() and not p.is_symlink()):
            files += 1
            size += path.stat().st_size
            done = subprocess.run(
                ["grep", "-aoFf", wanted.name, "--", str(path)],  # noqa: S607  # on any system
                capture_output=True, check=False, env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
            )  # fmt: skip
            for hit in set(done.stdout.decode("utf-8", "replace").splitlines()):
                found[f"{traces.get(hit, '?')} in {path.name}"] += 1
    return found, files, size


def _texts(secrets: Iterable[corpus.Secret], *, brief: bool) -> Iterator[str]:
    """Every secret in every notation; in brief, each in one."""
    for n, secret in enumerate(secrets):
        notations = [text for _, text in corpus.written(secret)]
        yield from [notations[n % len(notations)]] if brief else notations


def redaction(salt: int = 0, *, brief: bool = False) -> Outcome:
    """Send all of the corpus by every way, and search the disk."""
    secrets, alike = corpus.load(salt=salt)
    if brief:
        secrets, alike = secrets[::2], alike[::4]
    texts = list(enumerate(_texts(secrets, brief=brief)))
    traces = {trace: secret.kind for secret in secrets for trace in secret.traces}
    ways = 5
    share = [texts[way::ways] if brief else texts for way in range(ways)]
    with harness.stopped_daemon(_DEBUG) as daemon, tempfile.TemporaryDirectory() as outside:
        send_by_spool(daemon, share[0], 1 if brief else _HOOKS)
        spooled, *_ = search(daemon.home, traces)
        daemon.start()
        send_live(daemon, share[1])
        # As prompts, whose numbers are multiples of three.
        send_live(daemon, [(3 * (len(texts) + n), one.text) for n, one in enumerate(alike)])
        send_by_transcript(daemon, share[2], Path(outside))
        send_by_remembering(daemon, share[3][:: 1 if brief else 5])
        send_by_markdown(daemon, share[4], Path(outside))
        daemon.wait_until(lambda status: not worker(status, "intake")["spool"]["files"])
        if not brief:
            daemon.settle(is_distilled=False)
        hot, *_ = search(daemon.home, traces)  # the write-ahead log as it is
        export = str(Path(daemon.home, "everything.jsonl"))
        run(daemon, "export", export)
        run(daemon, "backup")
        exported = set(_strings(export))
        daemon.stop()
        found, files, size = search(daemon.home, traces)
    kinds = {secret.kind for secret in secrets}
    count = len(texts) if brief else len(texts) * ways
    return Outcome(
        f"{len(secrets)} secrets of {len(kinds)} kinds in {count:,} texts;"
        f" {files} files of {size / 1e6:.1f} MB searched",
        found=hot | spooled | found,
        altered=Counter(one.kind for one in alike if redact(one.text) != one.text),
        alike=Counter(one.kind for one in alike),
        missing=[one.text for one in alike if one.text not in exported],
    )


def _strings(export: str) -> Iterator[str]:
    """Every string in an export."""
    for line in Path(export).read_text(encoding="utf-8").splitlines():
        waiting = [json.loads(line)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
                if value[:1] in "{[":
                    with contextlib.suppress(ValueError):
                        waiting.append(json.loads(value))
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


def redact_all(salt: int) -> tuple[list[str], str]:
    """The whole corpus; what was found on the disk, altered or missing."""
    outcome = redaction(salt)
    altered = [
        f"{kind}: {n} of {outcome.alike[kind]} altered" for kind, n in outcome.altered.items()
    ]
    altered += [f"not in the export as sent: {text[:90]!r}" for text in outcome.missing[:5]]
    wrong = [f"{where}: {count}" for where, count in outcome.found.items()]
    share = f"{outcome.altered.total()} of {outcome.alike.total()} look-alikes altered"
    seen = f"{outcome.figures}; {share} (limit {FALSE_MAX:.0%})"
    return wrong if outcome.is_redacted_well else wrong + altered, seen


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    yield "redaction", lambda: redact_all(options.salt)
    for name, part in TRICKS.items():
        yield name, lambda part=part: (part(), "")


def main() -> None:
    """Run the trials."""
    run_trials("security", __doc__, _trials, salt=0)
