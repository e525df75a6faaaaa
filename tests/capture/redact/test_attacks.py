"""Secrets as people and programs write them go, their look-alikes stay, and every rule of gitleaks is answered."""

import functools
import re
from collections import Counter

from memd.capture.redact import PATTERNS, redact, redact_value
from tests import redaction_corpus as corpus
from tests.planted_secrets import ROWS
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/attacks")

SALTS = (0, 1)
"""Which drawings of each text are tried."""
SURVIVING_MAX = 0.02
ALTERED_MAX = 0.02
ATTACKS = [sample for salt in SALTS for sample in corpus.load("attacks.txt", salt)]
ALIKE = [sample for salt in SALTS for sample in corpus.load("lookalikes.txt", salt)]
KINDS = sorted({sample.kind for sample in ATTACKS})
redact_once = functools.cache(redact)
"""Several tests ask what becomes of the same texts."""


def gitleaks_rules():
    """(rule, text or None, reason or None) for each rule."""
    lines = (corpus.DATA / "gitleaks_rules.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("# "):
            continue
        rule, template, *reason = line.split("\t")
        yield rule, (None if reason else template), (reason[0] if reason else None)


RULES = list(gitleaks_rules())


def test_the_corpora_are_large_and_hold_no_secret_as_they_stand():
    texts = {sample.text for sample in corpus.load("attacks.txt")}
    assert len(texts) >= 700
    assert len(set(KINDS)) >= 15
    assert len({sample.text for sample in corpus.load("lookalikes.txt")}) >= 500
    written = (corpus.DATA / "attacks.txt").read_text(encoding="utf-8")
    found = [
        trace
        for sample in corpus.load("attacks.txt")
        for trace in sample.drawn
        if len(trace) >= 12 and trace in written
    ]
    assert found == []


def test_nearly_every_secret_goes():
    surviving = [sample.text for sample in ATTACKS if sample.survives(redact_once(sample.text))]
    assert len(surviving) <= SURVIVING_MAX * len(ATTACKS), surviving


@every_row("kind", KINDS)
def test_nine_in_ten_of_every_kind_go(kind):
    samples = [sample for sample in ATTACKS if sample.kind == kind]
    surviving = [sample.text for sample in samples if sample.survives(redact_once(sample.text))]
    assert len(surviving) <= 0.1 * len(samples), surviving


def test_of_the_look_alikes_hardly_one_is_altered():
    altered = [sample.text for sample in ALIKE if redact(sample.text) != sample.text]
    assert len(altered) <= ALTERED_MAX * len(ALIKE), altered


def test_redacting_twice_changes_nothing():
    once = [redact_once(sample.text) for sample in corpus.load("attacks.txt")]
    assert [redact(text) for text in once] == once


def test_what_surrounds_a_secret_stays():
    """A rule that swallowed whole lines would pass every other test."""
    kept = Counter()
    for sample in corpus.load("attacks.txt"):
        redacted = redact(f"first line\n{sample.text}\nlast line")
        kept[redacted.startswith("first line\n") and redacted.endswith("\nlast line")] += 1
    assert kept[False] <= 0.01 * kept.total()


def test_every_pattern_finds_something_of_the_corpora():
    texts = [sample.text for sample in ATTACKS] + [row.text for row in ROWS]
    found = {
        name
        for text in texts
        for name in re.findall(r"\[REDACTED:([a-z0-9-]+)\]", redact_once(text))
    }
    assert {pattern.name for pattern in PATTERNS} <= found
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)


@every_row("rule", [rule for rule in RULES if rule[1]], ids=lambda rule: rule[0])
def test_what_gitleaks_looks_for_goes(rule):
    name, template, _ = rule
    samples = [corpus.make(name, template, salt) for salt in SALTS]
    assert not [s.text for s in samples if s.survives(redact(s.text, entropy=False))]


def test_few_rules_of_gitleaks_are_left_out_and_each_says_why():
    left_out = {name: reason for name, template, reason in RULES if template is None}
    assert len(RULES) >= 220
    assert len({name for name, *_ in RULES}) == len(RULES)
    assert len(left_out) <= 20
    assert all(len(reason) > 20 for reason in left_out.values())


@every_row("value", TABLES["a_secret_in_an_object_goes"])
def test_a_secret_in_an_object_goes(value):
    filled, secrets = _fill(value)
    redacted = repr(redact_value(filled))
    assert secrets
    assert not [secret for secret in secrets if secret in redacted]


def test_numbers_that_make_up_a_key_go_and_others_stay():
    numbers = eval(corpus.make("key", "[‹64 bytes›]").text)  # noqa: S307  # digits and commas
    assert redact_value({"keypair": numbers}) == {"keypair": "[REDACTED:key-bytes]"}
    for harmless in (list(range(64)), [0] * 64, [255, 0] * 32, [1.5] * 64, numbers[:20]):
        assert redact_value({"row": harmless}) == {"row": harmless}


@every_row("value", TABLES["an_object_that_only_looks_like_it_stays"])
def test_an_object_that_only_looks_like_it_stays(value):
    assert redact_value(value) == value


def _fill(value):
    """Draw the parts of every string of a JSON value."""
    if isinstance(value, str):
        sample = corpus.make("value", value)
        return sample.text, list(sample.drawn)
    if isinstance(value, list):
        pairs = [_fill(item) for item in value]
        return [one for one, _ in pairs], [secret for _, more in pairs for secret in more]
    if isinstance(value, dict):
        pairs = {key: _fill(item) for key, item in value.items()}
        return {k: one for k, (one, _) in pairs.items()}, [
            s for _, more in pairs.values() for s in more
        ]
    return value, []


@every_row("piece", TABLES["a_text_that_nearly_matches_a_thousand_times_is_done"])
def test_a_text_that_nearly_matches_a_thousand_times_is_done(piece):
    text = piece * (20_000 // len(piece))
    assert isinstance(redact(text), str)
    assert isinstance(redact(f"aws akia AZDO JQQJ9 :AA curl ://x mysql {text}"), str)
