"""Inputs for fuzzing: real samples, altered, stretched, cut and joined. One random number generator makes each."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from benchmarks import corpus
from tests.stress import secret_corpus

DATA = Path(__file__).parents[2] / "data"
_STRANGE = (
    "\x00", "\n", "\r\n", "\u2028", "\x0b", "\x85", "\ufeff", "\ud800", "\udfff", "\ufffd", "é", "e\u0301",
    "ß", "İ", "ﬀ", "日本語", "한국", "🙂", "👩‍👩‍👧", "٣", "²", "١٢", "\u202e", "\u200d", "_", "__", "'", "’",
)  # fmt: skip
_TOKENS = (
    '"', "\\", "\\u0000", "\\ud83d", "{", "}", "[", "]", "(", ")", "](", "<", ">", ":", "=", ",", ";", "*",
    "#", "# ", "- ", "-", "---\n", "+++\n", "```\n", "~~~\n", "===", "|", "/", "../", "!", "?", "**/", "%", "&",
    "title: ", "tags: [a, b]", "date: 2026-05-01", "kind: fix", "<private>", "</private>",
    "<system-reminder>", "</system-reminder>", "<command-name>", "</command-name>", "<command-args>",
    "<persisted-output>", "saved to: ", ".txt", "<summary>", "[REDACTED:token]", "[REDACTED:",
    "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "password=", "api_key: ",
    "Authorization: Bearer ", "https://user:", "@example.org/", "eyJhbGciOi", "AKIA", "ghp_", "sk-",
    "def ", "import ", "from . import ", "Error: ", "Traceback (most recent call last):\n", '  File "a.py", line 3',
    "AND", "OR", "NOT", "NEAR(", "9" * 400, "1.2.3", "v1.", "1e999", "NaN", "null", "true", " ", "  ", "\t",
    "because ", "instead of ", "we decided to ", "fixed ", "TODO ", "http://", "e.g. ", "i.e.", "$(", "`",
)  # fmt: skip
_TIMES = (
    "now", "today", "yesterday", "last week", "this month", "last year", "7d", "2 weeks ago", "3mo",
    "2026-05-01", "2026-05", "2026", "20260501", "2026-W20-1", "2026-05-01T10:00Z", "1790000000000",
    "1790000000", "9999-12-31T23:59:59Z", "0001-01-01T00:00+23:59", "9999-12", "999999y", "-1", "0",
)  # fmt: skip
_NUMBERS = (
    0, 1, -1, 2, 7, 128, 255, 65_536, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40, 0.5,
    -0.0, 1e-320, 1.5e300, float("inf"), float("nan"), 253_402_300_800_000,
)  # fmt: skip
_TEXT_MAX = 20_000
_PUMPED = (200, 1_000, 4_000, 12_000, 40_000)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def hook_payloads() -> list[dict[str, Any]]:
    """Real hook payloads: one of every event, and those of whole sessions."""
    folder = DATA / "claude-code"
    found = [*_lines(folder / "every-event" / "hook-samples.jsonl")]
    found += _lines(folder / "ledger" / "hooks.jsonl")
    payloads = [json.loads(line).get("stdin") for line in found]
    return [payload for payload in payloads if isinstance(payload, dict)]


def transcript_lines() -> list[bytes]:
    """Lines of real transcripts."""
    return [
        line for file in sorted((DATA / "claude-code").rglob("*.jsonl"))
        if "hook" not in file.name for line in _lines(file)
    ]  # fmt: skip


class Generator:
    """Makes inputs with one `random.Random`."""

    named: Mapping[str, Sequence[Any]] = {}
    """Values that members of these names often have."""
    secrets: Sequence[str] = ()
    prose: Sequence[str] = ()

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        if not Generator.prose:
            known, alike = secret_corpus.load()
            Generator.secrets = [one.value for one in known]
            memories = corpus.Corpus(seed=1, vocabulary=500).memories(40, 1_790_000_000_000)
            Generator.prose = [
                *(str(one["text"]) for one in memories),
                *(one.text for one in alike),
                *corpus.Corpus(seed=1, vocabulary=500).questions(40),
            ]

    def chance(self, share: float) -> bool:
        """Whether it happens this time."""
        return self.random.random() < share

    def word(self) -> str:
        """A small piece of text with a meaning to some reader."""
        kind = self.random.choices(("token", "strange", "prose", "secret", "time", "any"), (6, 3, 4, 1, 1, 1))[0]  # fmt: skip
        if kind == "prose":
            return self.random.choice(self.random.choice(self.prose).split() or [""]) + " "
        if kind == "any":
            return chr(self.random.choice((self.random.randrange(256), self.random.randrange(0x11_0000))))  # fmt: skip
        pools = {"token": _TOKENS, "strange": _STRANGE, "secret": self.secrets, "time": _TIMES}
        return self.random.choice(pools[kind])

    def text(self) -> str:
        """Some text: prose, pieces, or one piece again and again."""
        kind = self.random.choices(("short", "pieces", "prose", "pumped"), (4, 4, 3, 2))[0]
        if kind == "short":
            return self.word() if self.chance(0.9) else ""
        if kind == "prose":
            return self.bent(self.random.choice(self.prose))
        if kind == "pieces":
            return "".join(self.word() for _ in range(self.random.randrange(1, 40)))
        return self.pumped()

    def pumped(self) -> str:
        """One piece (or two) as often as makes thousands of characters, and then something else."""
        piece = "".join(self.word() for _ in range(self.random.choice((1, 1, 2, 3)))) or "a"
        if self.chance(0.3):  # where names go on, and where they do not
            piece = self.random.choice("aA1_é") + self.random.choice("+-.:/@_=,;'()~$#* \n") * 2
            piece = piece[: self.random.choice((2, 3))]
        size = self.random.choice(_PUMPED)
        front, back = (self.word() if self.chance(0.5) else "" for _ in range(2))
        return front + (piece * (size // len(piece) + 1))[:size] + back

    def bent(self, text: str) -> str:
        """The text with a few things done to it."""
        for _ in range(self.random.choice((0, 1, 1, 2, 3, 8))):
            at = self.random.randrange(len(text) + 1)
            to = min(len(text), at + self.random.choice((0, 1, 2, 10, 100)))
            middle = self.random.choice((self.word(), "", text[at:to] * 3))
            text = (text[:at] + middle + text[to:])[:_TEXT_MAX]
        return text

    def torn(self, data: bytes) -> bytes:
        """The bytes with a few things done to them."""
        for _ in range(self.random.choice((1, 1, 2, 4))):
            at = self.random.randrange(len(data) + 1)
            to = min(len(data), at + self.random.choice((0, 1, 1, 4, 50)))
            word = self.word().encode("utf-8", "surrogatepass")
            byte = bytes([self.random.randrange(256)])
            middle = self.random.choice((b"", word, byte, data[at:to] * 2))
            data = data[:at] + middle + (b"" if self.chance(0.05) else data[to:])
        return data

    def scalar(self) -> Any:
        """A JSON value without members."""
        kind = self.random.choices(("text", "number", "other"), (5, 2, 2))[0]
        if kind == "text":
            return self.text()
        return self.random.choice(_NUMBERS if kind == "number" else (None, True, False))

    def value(self, depth: int = 4) -> Any:
        """Any JSON value."""
        if depth <= 0 or self.chance(0.5):
            return self.scalar()
        count = self.random.choice((0, 1, 2, 3, 8))
        if self.chance(0.03):
            made: Any = self.scalar()
            for _ in range(self.random.choice((20, 60, 110, 140))):
                made = [made] if self.chance(0.5) else {"a": made}
            return made
        if self.chance(0.5):
            return [self.value(depth - 1) for _ in range(count)]
        return {self.word(): self.value(depth - 1) for _ in range(count)}

    def changed(self, value: Any, share: float = 0.15) -> Any:
        """The value with members altered, dropped, added, doubled, or of another type."""
        if self.chance(share / 3):
            return self.value(3)
        if isinstance(value, dict):
            return self._changed_object(value, share)
        if isinstance(value, list):
            items = [self.changed(item, share) for item in value if not self.chance(share / 4)]
            if items and self.chance(share):
                items.insert(self.random.randrange(len(items)), self.random.choice(items))
            return items
        if isinstance(value, str) and self.chance(share):
            return self.bent(value) if self.chance(0.6) else self.text()
        return self.scalar() if self.chance(share / 2) else value

    def _changed_object(self, value: Mapping[str, Any], share: float) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, member in value.items():
            if self.chance(share / 4):
                continue
            name = self.bent(key) if self.chance(share / 10) else key
            made[name] = self.changed(member, share)
        if made and self.chance(share / 2):
            first, second = self.random.choice(list(made)), self.random.choice(list(made))
            made[first], made[second] = made[second], made[first]
        if self.chance(share / 2):
            made[self.word()] = self.value(2)
        return made

    def fitting(  # noqa: PLR0911  # one for each form of schema
        self, schema: Mapping[str, Any], defs: Mapping[str, Any] | None = None
    ) -> Any:  # one for each form of schema
        """A value that fits this JSON schema, or nearly."""
        defs = schema.get("$defs", defs or {})
        if "$ref" in schema:
            return self.fitting(defs[schema["$ref"].rpartition("/")[2]], defs)
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            return self.fitting(self.random.choice(branches), defs)
        if "const" in schema or "enum" in schema:
            return self.random.choice(schema.get("enum") or [schema["const"]])
        kinds = schema.get("type")
        kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self._object(schema, defs)
        if kind == "array":
            return [self.fitting(schema.get("items", {}), defs) for _ in range(self.random.choice((0, 1, 1, 3)))]  # fmt: skip
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 0), schema.get("maximum", 1_000)
            return self.random.choice((low, high, min(high, low + self.random.randrange(40))))
        if kind == "string":
            return self.random.choice((self.text, self.word, lambda: self.random.choice(_TIMES)))()[: schema.get("maxLength", 500)]  # fmt: skip
        return {"boolean": self.chance(0.5), "null": None}.get(str(kind), self.value(2))

    def _object(self, schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
        needed = schema.get("required", ())
        return {
            name: self.random.choice(self.named[name])
            if name in self.named and self.chance(0.7)
            else self.fitting(one, defs)
            for name, one in schema.get("properties", {}).items()
            if name in needed or self.chance(0.3)
        }

    def lines(self, seeds: Sequence[bytes], most: int = 30) -> bytes:
        """Real lines in a row, some of them altered as JSON, some as bytes."""
        count = self.random.randrange(1, most)
        start = self.random.randrange(len(seeds))
        return b"\n".join(
            self.line(seeds[(start + n) % len(seeds)]) for n in range(count)
        ) + self.random.choice((b"\n", b"", b"\r\n"))

    def line(self, seed: bytes) -> bytes:
        """A real line, as it is or altered."""
        kind = self.random.choices(("as it is", "json", "bytes"), (4, 5, 1))[0]
        if kind == "json":
            return dumped(self.changed(json.loads(seed)))
        return seed if kind == "as it is" else self.torn(seed)


def dumped(value: Any) -> bytes:
    """A value as JSON, halves of surrogate pairs and all."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


GENERATORS = st.randoms(use_true_random=True).map(Generator)
"""Hypothesis draws the seed alone: an input of thousands of random choices would exceed what it records."""
