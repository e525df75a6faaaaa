"""What people say, labelled, from `tests/data/speech.toml`."""

import tomllib
from pathlib import Path

_LABELLED = tomllib.loads(
    (Path(__file__).parents[1] / "data" / "speech.toml").read_text(encoding="utf-8")
)
NO_RULE: tuple[str, ...] = tuple(one for group in _LABELLED["no_rule"].values() for one in group)
"""One line or little more that is no rule of its speaker."""
REPROACHES: list[str] = _LABELLED["no_rule"]["said of what was done"]
PASTED: dict[str, str] = _LABELLED["pasted"]
"""Whole documents, without a fence around them."""
RULES: tuple[tuple[str, str, str], ...] = tuple(
    (kind, prompt, part) for kind, rows in _LABELLED["rules"].items() for prompt, part in rows
)
"""Kind, prompt, and a part of the title that it must yield."""
