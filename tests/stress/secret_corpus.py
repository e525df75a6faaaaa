"""The redaction corpus: secrets and look-alikes made at load from tests/data/secrets.jsonl, and how they are written.

The file says how each is made and that none was ever real. Here: what the parts mean, the notations in
which a secret travels (a prompt, JSON in JSON, a shell, an address …), and what of it must not be found
on a disk. Not here: the ways into memd (security.py).
"""

import json
import random
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "data" / "secrets.jsonl"
_WORD = string.ascii_letters + string.digits
_ALPHABETS = {
    "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF", "word": _WORD, "url": _WORD + "-_",
    "b64": _WORD + "+/", "crypt": _WORD + "./", "base32": string.ascii_uppercase + "234567",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "upper": string.ascii_uppercase + string.digits,
    "lower": string.ascii_lowercase + string.digits, "alpha": string.ascii_letters,
    "digit": string.digits, "nonzero": "123456789",
    "django": string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)",
}  # fmt: skip
_PART = re.compile(r"\{(\d+) (\w+)\}")
_HALF_MIN = 20
_LINE_MIN = 12


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that must never reach the disk."""

    kind: str
    value: str
    name: str | None
    """What it has to be assigned to, to be known as a secret; None if its look says it."""
    around: tuple[str, str] | None
    """What it has to stand between."""
    drawn: tuple[str, ...]
    """Its random parts."""
    is_block: bool = False
    """It has lines of its own."""

    @property
    def traces(self) -> tuple[str, ...]:
        """What must not be found: all of it (a block: each line), and either half of a long random part."""
        if self.is_block:
            return tuple(part for part in self.drawn if len(part) >= _LINE_MIN)
        halves = [
            half
            for part in self.drawn
            if len(part) >= _HALF_MIN
            for half in (part[: len(part) // 2], part[len(part) // 2 :])
        ]
        forms = (self.value, json.dumps(self.value)[1:-1], urllib.parse.quote(self.value, safe=""))
        return tuple(dict.fromkeys((*forms, *halves)))


@dataclass(frozen=True, slots=True)
class LookAlike:
    """Something that must stay as it is."""

    kind: str
    text: str


def load(file: Path = FILE, *, salt: int = 0) -> tuple[list[Secret], list[LookAlike]]:
    """Every secret and every look-alike of the file, made; another `salt` draws others of the same kinds."""
    secrets, alike = [], []
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        row = json.loads(line)
        seed = row["seed"] + 1_000_000 * salt
        parts = [_made(part, seed, n) for n, part in enumerate(row["made"])]
        if row["secret"]:
            secrets.append(_secret(row, parts))
        else:
            alike.append(LookAlike(row["kind"], "".join(parts)))
    return secrets, alike


def _made(part: str, seed: int, place: int) -> str:
    drawn = _PART.fullmatch(part)
    if drawn is None:
        return part
    lot = random.Random(f"{seed}/{place}")  # repeatable, not secret
    return "".join(lot.choice(_ALPHABETS[drawn[2]]) for _ in range(int(drawn[1])))


def _secret(row: dict[str, Any], parts: list[str]) -> Secret:
    both = zip(row["made"], parts, strict=True)
    drawn = tuple(made for part, made in both if _PART.fullmatch(part))
    around = (row["before"], row["after"]) if "before" in row else None
    is_block = row.get("is_block", False)
    return Secret(row["kind"], "".join(parts), row.get("name"), around, drawn, is_block)


def _json(secret: Secret) -> str:
    return json.dumps({"retries": 3, _name(secret): secret.value, "region": "eu"})


def _name(secret: Secret) -> str:
    # A name that says nothing: what the look of a secret tells must be enough.
    return secret.name or "thing"


def _between(secret: Secret) -> str:
    before, after = secret.around or ("", "")
    return f"{before}{secret.value}{after}"


def _header(secret: Secret) -> str:
    name = _name(secret).strip("_").replace("_", "-")
    return f'curl -s -H "X-{name}: {secret.value}" https://api.example.com/v1'


def _url(secret: Secret) -> str:
    query = urllib.parse.quote(secret.value, safe="")
    return f"GET https://api.example.com/v1/items?{_name(secret)}={query}&page=2 failed"


Notation = Callable[[Secret], str]
_NAMED: dict[str, Notation] = {
    "JSON": _json,
    "JSON in JSON": lambda secret: json.dumps({"body": _json(secret), "status": 200}),
    "shell export": lambda s: f"cd app && export {_name(s)}='{s.value}' && make deploy",
    "URL": _url,
    "header": _header,
    "YAML": lambda s: f"service:\n  replicas: 2\n  {_name(s)}: {s.value}\n  region: eu\n",
    ".env": lambda s: f"DEBUG=1\n{_name(s)}={s.value}\nPORT=8080\n",
    "INI": lambda s: f"[service]\nhost = db\n{_name(s)} = {s.value}\n",
    "Python": lambda s: f'import os\n\n{_name(s)} = "{s.value}"  # for now\n',
    "JavaScript": lambda s: f"const client = connect({{ {_name(s)}: '{s.value}', retries: 3 }});",
}
_PROSE: dict[str, Notation] = {
    "prose": lambda s: f"please use {s.value} for the staging deploy and tell me when it is done"
}
_BLOCKS: dict[str, Notation] = {
    "PEM": lambda s: f"cat key.pem\n{s.value}\ndone",
    "PEM in YAML": lambda s: (
        f"tls:\n  key: |\n    {s.value.replace(chr(10), chr(10) + '    ')}\n  port: 443\n"
    ),
    "PEM in Python": lambda s: f'KEY = """{s.value}"""\nload(KEY)\n',
    "PEM in JSON": lambda s: json.dumps({"type": "service_account", "thing": s.value + "\n"}),
}
_WHOLE: dict[str, Notation] = {
    "as it is": _between,
    "in JSON": lambda secret: json.dumps({"stdout": "ok\n" + _between(secret)}),
    "in prose": lambda secret: f"it says\n{_between(secret)}\nand stops",
}


def written(secret: Secret) -> Iterator[tuple[str, str]]:
    """(notation, text) for every notation that fits this secret."""
    if secret.is_block:
        fitting = _BLOCKS
    elif secret.around is not None:
        fitting = _WHOLE
    else:
        fitting = _NAMED if secret.name else _PROSE | _NAMED
    return ((notation, write(secret)) for notation, write in fitting.items())
