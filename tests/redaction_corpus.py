"""Attacks and look-alikes of tests/data/attacks.txt and lookalikes.txt, made when they are loaded.

A part between ‹ and › is drawn from a seed that its line gives, so that no secret lies in the repository:
`‹pw›` a password such as people choose, `‹32 hex›` characters of an alphabet, `‹uuid›`, `‹basic›` a user and
a password in base64, `‹b64pw›` a password in base64, `‹64 bytes›` numbers, `‹12 words›` a seed phrase. What stands between `b64«` or `hex«` and `»` is
coded when all is drawn.
"""

import base64
import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

from tests.tables import read_tables

TABLES = read_tables("redaction_corpus")

DATA = Path(__file__).parent / "data"
_WORD = string.ascii_letters + string.digits
ALPHABETS = {
    "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF", "word": _WORD, "url": _WORD + "-_",
    "b64": _WORD + "+/", "crypt": _WORD + "./", "base32": string.ascii_uppercase + "234567",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "upper": string.ascii_uppercase + string.digits,
    "plain": string.ascii_lowercase,
    "lower": string.ascii_lowercase + string.digits, "alpha": string.ascii_letters,
    "digit": string.digits, "nonzero": "123456789", "base58": "".join(sorted(set(_WORD) - set("0OIl"))),
}  # fmt: skip
_PART = re.compile(r"‹(?:(\d+|numbered) )?(\w+)›")
_WORDS = TABLES["_WORDS"]
MNEMONIC = TABLES["MNEMONIC"]
_CODED = re.compile(r"(b64|hex)«(.*?)»", re.DOTALL)
_SIGNS = "!#@%+?_-."
_ESCAPES = (("\\\\", "\0"), ("\\n", "\n"), ("\\t", "\t"), ("\\e", "\x1b"), ("\0", "\\"))
_HALF_MIN = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with parts that were drawn."""

    kind: str
    text: str
    drawn: tuple[str, ...]
    """Its secrets; of a long one either half, too."""

    def survives(self, redacted):
        """Whether something of a secret is still there."""
        return any(trace in redacted for trace in self.drawn)


def load(name, salt=0):
    """The samples of a file of tests/data. Another `salt` draws others."""
    samples, kind = [], ""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif line and not line.startswith("# "):
            samples.append(make(kind, line, salt))
    return samples


def sample(samples, step):
    """The first of every kind, and every so many of the others."""
    seen = set()
    return [
        one
        for number, one in enumerate(samples)
        if number % step == 0 or not (one.kind in seen or seen.add(one.kind))
    ]


def make(kind, template, salt=0):
    """Draw the parts of a template."""
    lot = random.Random(f"{template}/{salt}")  # noqa: S311  # repeatable, not secret
    traces = []

    def draw(found):
        whole, secrets = _draw(lot, found[1], found[2])
        traces.extend(secrets)
        return whole

    template = re.sub(r"(?<!\\)\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), template)
    for written, meant in _ESCAPES:
        template = template.replace(written, meant)
    text = _CODED.sub(lambda found: _code(found[1], found[2], traces), _PART.sub(draw, template))
    return Sample(kind, text, tuple(dict.fromkeys(traces)))


def _code(form, plain, traces):
    """Code a text, and put what of its code stands for a drawn part alone in the place of that part."""
    whole = plain.encode().hex() if form == "hex" else base64.b64encode(plain.encode()).decode()
    size = 2 if form == "hex" else 4 / 3
    for trace in [one for one in traces if one in plain]:
        at = plain.find(trace)
        traces[traces.index(trace)] = whole[int(at * size) + 2 : int((at + len(trace)) * size) - 2]
    return whole


def _draw(lot, count, what):
    """Return a drawn part, and what of it must not survive."""
    if what in {"pw", "basic", "b64pw"}:
        password = draw_password(lot)
        coded = base64.b64encode(f"{'svc:' * (what == 'basic')}{password}".encode()).decode()
        return (password, [password]) if what == "pw" else (coded, [coded.rstrip("=")])
    if what == "uuid":
        drawn = "-".join("".join(lot.choices(ALPHABETS["hex"], k=n)) for n in (8, 4, 4, 4, 12))
        return drawn, [drawn]
    if what == "bytes":
        drawn = ", ".join(str(lot.randrange(256)) for _ in range(int(count)))
        return drawn, [drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]]
    if what == "words":
        if count == "numbered":
            drawn = " ".join(f"{n}. {lot.choice(MNEMONIC)}" for n in range(2, 14))
            return drawn, [drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]]
        drawn = " ".join(lot.choices(MNEMONIC, k=int(count)))
        return drawn, [drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]]
    drawn = "".join(lot.choices(ALPHABETS[what], k=int(count)))
    half = len(drawn) // 2
    long = len(drawn) >= _HALF_MIN
    # A few characters are part of a longer token; alone they would be found anywhere.
    return drawn, [drawn[:half], drawn[half:]] if long else [drawn] * (len(drawn) > 8)


def draw_password(lot):
    """A password such as people choose: words with digits and signs, or characters at random."""
    word, other = lot.choice(_WORDS), lot.choice(_WORDS)
    digits = "".join(lot.choices(string.digits, k=lot.randint(2, 4)))
    sign = lot.choice(_SIGNS)
    return lot.choice(
        (
            f"{word.capitalize()}{digits}{lot.choice('!?#')}",
            f"{word}{digits}",
            f"{word}-{other}-{digits}",
            f"{word.replace('a', '4').replace('e', '3').replace('o', '0')}{digits}{lot.choice('!$')}x",
            f"{word.capitalize()}{other.capitalize()}{digits}",
            "".join(lot.choices(_WORD, k=12)) + digits[:1],
            f"{word[0].upper()}{word[1:]}{sign}{digits}",
        )
    )
