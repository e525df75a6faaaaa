"""Sentences of a turn that may name it, and numbers about each that say how well it would. Pure.

Two models read the numbers. One says of each word of a turn how likely a good title has it; the other says of each
sentence how likely it is a good title, and knows what the first one thinks of its words.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memd.distill.episodes import Story
from memd.distill.text import drop_fences, is_short, read_statements, strip_markup
from memd.machine_text import read_plan
from memd.text import content_stems, is_stop_word, normalised, terms, words

# ── The candidates ───────────────────────────────────────────────────────────────────────────────

TITLE_CHARACTERS = 120
_CUT_MIN = 40
_HEAD_MAX, _TAIL_MAX = 16, 6
"""Statements of a closing message: most that name a turn stand at its beginning, some at its end."""
_SHOWN_WORDS_MIN = 5
_FIRST_MAX, _PROMPT_MAX, _PROMPT_TAIL_MAX = 3, 5, 2
_WORDS_MIN, _SIGNS_MIN = 2, 4
"""Words of a title, or signs where words are not apart."""
_ASIDE = re.compile(r"\s+\((?![^()]*\bno\b|[^()]*\bnot\b)[^()]{3,}\)")
BORDERS = (
    re.compile(r"(?<=[\w`)\"'”%])(?=\s+[–—]\s|\s+-\s|;\s|\.\s|:\s)"),
    re.compile(r"(?<=[\w`)\"'”%])(?=,\s|\s+\()"),
)  # dashes as people type them
"""Ends of clauses, the surest first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may name a turn, or a part of its title."""

    text: str
    """On one line, at most as long as a title."""
    origin: str
    """`closing`, `first`, `prompt`, `typed` or `plan`."""
    form: str
    """`sentence`, `heading` or `item`."""
    position: int
    """Its number among those of its origin."""
    count: int
    """Number of those of its origin."""
    length: int
    """Characters of the whole sentence."""
    leads: bool = False
    """It ended with a colon."""


def list_candidates(story: Story, told: Sequence[str] = ()) -> list[Candidate]:
    """All sentences that may name a turn, once each; the closing message first."""
    found: dict[str, Candidate] = {}
    elsewhere = [normalised(text) for text in told]
    shown = [line for said in story.prompts for line in _list_fenced(said.text)]
    for one in _read_texts_of_turn(story):
        said = normalised(one.text)
        is_told = one.origin == "prompt" and any(said in text or text in said for text in elsewhere)
        if not is_told and not any(line in said for line in shown):
            found.setdefault(one.text.lower(), one)
    return list(found.values())


def _list_fenced(prompt: str) -> Iterator[str]:
    """The sentences that a prompt shows between fences: what repeats them is nobody's outcome."""
    if "```" in prompt or "~~~" in prompt:
        kept = drop_fences(prompt)
        for line in prompt.split("\n"):
            if line not in kept and len(line.split()) >= _SHOWN_WORDS_MIN:
                yield normalised(line)


def _read_texts_of_turn(story: Story) -> Iterator[Candidate]:
    told = story.told
    yield from _read_message(told, "closing", _HEAD_MAX, _TAIL_MAX)
    if story.texts and story.texts[0].text != told:
        yield from _read_message(story.texts[0].text, "first", _FIRST_MAX, 0)
    for said in story.prompts:
        if plan := read_plan(said.text):
            yield from _make_candidates([(plan.subject, "heading", False)], "plan", 1)
        elif not is_short(said.text):
            yield from _read_message(said.text, "prompt", _PROMPT_MAX, _PROMPT_TAIL_MAX)
    typed = [one.said.text for one in story.refusals]
    typed += [one.answer.text for one in story.questions]
    for text in typed:
        yield from _read_message(text, "typed", 2, 0)


def _read_message(message: str, origin: str, head: int, tail: int) -> Iterator[Candidate]:
    found = [(one.text, one.form, one.leads) for one in read_statements(message)]
    kept = [*found[:head], *found[max(head, len(found) - tail) :]]
    yield from _make_candidates(kept, origin, len(found))


def _make_candidates(
    statements: Sequence[tuple[str, str, bool]], origin: str, count: int
) -> Iterator[Candidate]:
    for position, (text, form, leads) in enumerate(statements):
        shown = shorten(text)
        if len(shown.split()) >= _WORDS_MIN or (len(shown) >= _SIGNS_MIN and not shown.isascii()):
            yield Candidate(shown, origin, form, position, count, len(text), leads)


def shorten(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """A sentence within so many characters: without asides in brackets, else cut where a clause ends; unended marks closed."""
    flat = " ".join(strip_markup(text).split())
    if len(flat) > limit:
        flat = _ASIDE.sub("", flat)
    if len(flat) <= limit:
        return flat.rstrip(" ,;:")
    for border in BORDERS:
        ends = [m.start() for m in border.finditer(flat, _CUT_MIN, limit + 1)]
        if ends := [end for end in ends if is_closed(flat[:end])]:
            return flat[: ends[-1]].rstrip(" ,;:")
    cut = flat[: limit - 1].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.-(") + "…"


def is_closed(text: str) -> bool:
    """Return whether no code mark or bracket is open at the end of a text."""
    return text.count("`") % 2 == 0 and text.count("(") <= text.count(")")


# ── The numbers ──────────────────────────────────────────────────────────────────────────────────

Floats = NDArray[np.float32]
_READ_CHARACTERS, _PROMPT_CHARACTERS, _EARLY_CHARACTERS = 12_000, 4_000, 200
_QUESTION = re.compile(r"\?[\s\"')”*]*$")
_PARTICIPLE = re.compile(r"^[\"'`(]?\w+(?:ed|en|t|iert|é|ado|ido)\b", re.IGNORECASE)
_SELF = re.compile(r"^(?:i|we|ich|wir|je|nous)\b", re.IGNORECASE)
_NAME = re.compile(r"`[^`]+`|\w_\w|[a-z][A-Z]|\w/\w|\w\.\w")
_PATH = re.compile(r"[\w-]+/[\w./-]+|[\w-]+\.[a-z]{1,5}\b")
WORD_FEATURES = (
    "in prompt", "times in prompt", "in first prompt words", "in closing", "times in closing", "share of closing", "in first sentence",
    "in second sentence", "first place", "in heading", "in bold", "in item", "in last sentence",
    "in first message", "in typed", "in files", "in changes",
    "is name", "has capital", "is number", "characters", "in code marks", "sentences with it", "prompt words", "closing words", "in commit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TurnWords:
    """The words of a turn, each with its numbers."""

    stems: tuple[str, ...]
    table: Floats
    """One row per stem."""


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """The texts of a turn by which its title is judged."""

    prompt: str
    closing: str
    first: str
    typed: str
    files: tuple[str, ...]
    changed: str
    commits: str
    commands: int
    edits: int


def read_texts(story: Story) -> TurnTexts:
    """The texts of a turn."""
    typed = [one.said.text for one in story.refusals] + [one.answer.text for one in story.questions]
    commits = (run.command[:400] for run in story.commands if "git commit" in run.command)
    return TurnTexts(
        prompt=story.prompt[:_PROMPT_CHARACTERS],
        closing=story.told[:_READ_CHARACTERS],
        first=story.texts[0].text[:2000] if story.texts else "",
        typed=" ".join(typed)[:2000],
        files=tuple(path.rsplit("/", 1)[-1] for path in story.edited[:12]),
        changed=" ".join(e.new[:400] for e in story.edits[:12])[:4000],
        commits=" ".join(commits)[:2000],
        commands=len(story.commands),
        edits=len(story.edits),
    )


def stem_set(text: str) -> frozenset[str]:
    """The stems of a text that are no stop words."""
    return frozenset(content_stems(text)) if text.strip() else frozenset()


def measure_words(texts: TurnTexts, candidates: Sequence[Candidate]) -> TurnWords:
    """The stems of a turn, those of its candidates, each with the numbers of WORD_FEATURES."""
    told = [one for one in candidates if one.origin == "closing"]
    sets = [stem_set(one.text) for one in told]
    in_prompt = Counter(content_stems(texts.prompt)) if texts.prompt.strip() else Counter()
    early = stem_set(texts.prompt[:120])
    in_closing = Counter(content_stems(texts.closing)) if texts.closing.strip() else Counter()
    total = sum(in_closing.values()) or 1
    headings, items = (
        frozenset(t for own, c in zip(sets, told, strict=True) if c.form == form for t in own)
        for form in ("heading", "item")
    )
    bold = stem_set(" ".join(re.findall(r"\*\*([^*\n]{2,80})\*\*", texts.closing)))
    code = stem_set(" ".join(re.findall(r"`([^`\n]{2,80})`", texts.closing + " " + texts.prompt)))
    first, typed = stem_set(texts.first), stem_set(texts.typed)
    files = stem_set(" ".join(texts.files))
    changed, commits = stem_set(texts.changed), stem_set(texts.commits)
    prompt_words, closing_words = np.log1p(sum(in_prompt.values())), np.log1p(total)
    seen = _find_first_places(candidates)
    within = Counter(stem for s in sets for stem in s)
    empty = frozenset[str]()
    head, second, *_ = *sets, empty, empty
    last = sets[-1] if sets else empty
    rows = [
        (
            stem in in_prompt, min(in_prompt[stem], 6), stem in early,
            stem in in_closing, np.log1p(in_closing[stem]), in_closing[stem] / total,
            stem in head, len(sets) > 1 and stem in second, np.log1p(place),
            stem in headings, stem in bold, stem in items, stem in last,
            stem in first, stem in typed, stem in files, stem in changed,
            bool(_NAME.search(word)) or len(terms(word)) > 1, word[:1].isupper(), stem.isdigit(),
            min(len(stem), 20), stem in code, within[stem], prompt_words, closing_words, stem in commits,
        )
        for stem, (word, place) in seen.items()
    ]  # fmt: skip
    table = np.array(rows, np.float32) if rows else np.zeros((0, len(WORD_FEATURES)), np.float32)
    return TurnWords(tuple(seen), table)


def _find_first_places(candidates: Sequence[Candidate]) -> dict[str, tuple[str, int]]:
    """Map each stem to its first word and the number of its first candidate."""
    seen: dict[str, tuple[str, int]] = {}
    for number, one in enumerate(candidates):
        for word in words(one.text):
            for stem in () if is_stop_word(word) else terms(word):
                seen.setdefault(stem, (word, number))
    return seen


FORM_FEATURES = (
    "closing", "first", "prompt", "typed", "plan", "heading", "item", "sentence",
    "place", "log place", "is first", "from end", "is last", "characters", "is cut",
    "words", "characters a word", "stop words",
    "central", "central rank", "central share", "prompt words in it", "of prompt", "rank in prompt", "file in it",
    "question", "leads", "self", "participle", "names", "path", "digits", "capitals", "colon in it", "dash in it", "commas", "period in it",
    "prompt length", "closing length", "candidates", "edits", "commands", "has answer", "like prompt's start",
)  # fmt: skip
TOLD_FEATURES = ("told", "told rank", "told share", "told density", "first told", "first told rank")
SENTENCE_FEATURES = (*FORM_FEATURES, *TOLD_FEATURES)
REASONS: Mapping[str, tuple[str, ...]] = {
    "it has the words that good titles have": TOLD_FEATURES,
    "its words recur in the turn": ("central", "central rank", "central share"),
    "it has words of the prompt": ("prompt words in it", "of prompt", "rank in prompt", "like prompt's start"),
    "where it stands in its message": ("place", "log place", "is first", "from end", "is last"),
    "which text it is from": ("closing", "first", "prompt", "typed", "plan"),
    "its form": ("heading", "item", "sentence", "question", "leads", "self", "participle"),
    "its length": ("characters", "is cut", "words", "characters a word", "stop words"),
    "names, numbers and marks in it": (
        "file in it", "names", "path", "digits", "capitals", "colon in it", "dash in it", "commas", "period in it",
    ),
}  # fmt: skip
"""Reason, as `mem_why` tells it → the features that speak for it. The rest is the same for all sentences of a turn."""


def list_stems(candidates: Sequence[Candidate]) -> list[frozenset[str]]:
    """The stems of each candidate."""
    return [stem_set(one.text) for one in candidates]


def measure_forms(texts: TurnTexts, candidates: Sequence[Candidate]) -> Floats:
    """One row of FORM_FEATURES per candidate."""
    sets = list_stems(candidates)
    prompt, early = stem_set(texts.prompt), stem_set(texts.prompt[:_EARLY_CHARACTERS])
    within = Counter(stem for own in sets for stem in own)
    files = [name.rsplit(".", 1)[0].lower() for name in texts.files if len(name) > 3]  # noqa: PLR2004  # shorter names are in every text
    central = np.array([sum(math.log(within[stem]) for stem in own) for own in sets])
    in_prompt = np.array([len(own & prompt) for own in sets])
    ranks, prompt_ranks = _rank(central), _rank(in_prompt)
    turn = (
        math.log1p(len(texts.prompt)), math.log1p(len(texts.closing)), len(candidates),
        math.log1p(texts.edits), math.log1p(texts.commands), bool(texts.closing),
    )  # fmt: skip
    rows = []
    for number, (one, own) in enumerate(zip(candidates, sets, strict=True)):
        text, said = one.text, words(one.text)
        count, size = len(said) or 1, len(own) or 1
        rows.append((
            *(one.origin == o for o in ("closing", "first", "prompt", "typed", "plan")),
            *(one.form == f for f in ("heading", "item", "sentence")),
            1 / (1 + one.position), math.log1p(one.position), one.position == 0,
            1 / max(one.count - one.position, 1), one.count - 1 == one.position,
            min(one.length, 300) / TITLE_CHARACTERS, one.length > TITLE_CHARACTERS,
            len(said), sum(map(len, said)) / count, sum(map(is_stop_word, said)) / count,
            central[number], ranks[number], central[number] / size,
            in_prompt[number], in_prompt[number] / (len(prompt) or 1), prompt_ranks[number],
            any(name in text.lower() for name in files), bool(_QUESTION.search(text)), one.leads,
            bool(_SELF.match(text)), bool(_PARTICIPLE.match(text)),
            len(_NAME.findall(text)), bool(_PATH.search(text)), sum(c.isdigit() for c in text),
            sum(word[:1].isupper() for word in said[1:]),
            ":" in text, "—" in text or " - " in text, text.count(","), ". " in text,
            *turn, len(own & early) / size,
        ))  # fmt: skip
    return np.array(rows, np.float32).reshape(-1, len(FORM_FEATURES))


def measure_told(sets: Sequence[Iterable[str]], likely: Mapping[str, float]) -> Floats:
    """One row of TOLD_FEATURES per candidate, by its stems; `likely`: how likely a good title has a stem."""
    told = np.array([sum(likely.get(stem, 0.0) for stem in own) for own in sets])
    sizes = np.array([max(len(list(own)), 1) for own in sets])
    ranks, total = _rank(told), sum(likely.values()) or 1.0
    columns = np.broadcast_arrays(told, ranks, told / total, told / sizes, told[0], ranks[0])
    return np.stack(columns, 1).astype(np.float32)


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each value among all: 0 for the greatest, 1 for the least."""
    order = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    return order / max(len(values) - 1, 1)


# ── The small boosted trees that read these numbers ───────────────────────────────────────────────

WEIGHTS = Path(__file__).with_name("weights.npz")


@dataclass(frozen=True, slots=True)
class Trees:
    """Complete binary trees of one depth whose leaves are added up."""

    base: float
    features: NDArray[np.int16]
    """(trees, inner nodes): the column that a node looks at."""
    thresholds: Floats
    """(trees, inner nodes): a greater value goes right."""
    leaves: Floats
    """(trees, leaves)."""

    def predict(self, table: Floats) -> Floats:
        """One value per row."""
        count = len(self.features)
        depth = int(np.log2(self.leaves.shape[1]))
        trees = np.arange(count)
        node = np.zeros((len(table), count), np.int64)
        rows = np.arange(len(table))[:, None]
        for level in range(depth):
            inner = 2**level - 1 + node
            right = table[rows, self.features[trees, inner]] > self.thresholds[trees, inner]
            node = 2 * node + right
        added: Floats = (self.base + self.leaves[trees, node].sum(1)).astype(np.float32)
        return added

    def trace(self, row: Floats, names: Sequence[str]) -> dict[str, float]:
        """Return what each feature added to the value of one row: the change of the mean below each node that looked at it."""
        trees, node = np.arange(len(self.features)), np.zeros(len(self.features), np.int64)
        added = np.zeros(len(names))
        for level in range(int(np.log2(self.leaves.shape[1]))):
            inner = 2**level - 1 + node
            columns = self.features[trees, inner]
            below = 2 * node + (row[columns] > self.thresholds[trees, inner])
            splits = np.isfinite(self.thresholds[trees, inner])
            change = self._mean(level + 1)[trees, below] - self._mean(level)[trees, node]
            np.add.at(added, columns[splits], change[splits])
            node = below
        return dict(zip(names, added.tolist(), strict=True))

    def _mean(self, level: int) -> Floats:
        """The mean of the leaves below each node of a level."""
        mean: Floats = self.leaves.reshape(len(self.leaves), 2**level, -1).mean(2)
        return mean


@dataclass(frozen=True, slots=True)
class Ranker:
    """The models that judge the words and the sentences of a turn."""

    words: Trees
    sentences: Trees

    def rate_words(self, table: Floats) -> Floats:
        """Rate how likely a good title has each word."""
        rated: Floats = (1 / (1 + np.exp(-self.words.predict(table)))).astype(np.float32)
        return rated


def read_ranker(path: Path) -> Ranker:
    """The ranker of a file of weights."""
    with np.load(path) as kept:
        words, sentences = (
            Trees(
                float(kept[f"{name}_base"]),
                kept[f"{name}_features"].astype(np.int16),
                kept[f"{name}_thresholds"].astype(np.float32),
                kept[f"{name}_leaves"].astype(np.float32),
            )
            for name in ("words", "sentences")
        )
    return Ranker(words, sentences)


@cache
def shipped_ranker() -> Ranker:
    """The ranker that memd comes with."""
    return read_ranker(WEIGHTS)
