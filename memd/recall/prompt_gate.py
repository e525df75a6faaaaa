"""Is a prompt worth a search; which hits are good enough to inject."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memd.index import entities
from memd.index.memory_index import MemoryIndex
from memd.index.postings import TermStatistics, idf
from memd.models import Summary
from memd.recall.retrievers import Floats, IndexedTerms, Rows, is_among
from memd.recall.types import Answer, Hit, RelevanceGate
from memd.text import WORD, fold, is_stop_word, normalised, terms, words

# MERGED from memd.recall.worth:
# MERGED Whether a prompt is worth a look at what is known, and what to look for. Pure.
# MERGED
# MERGED Most prompts steer (`yes`, `go on`, `/clear`): to look anything up for them can only show what nobody
# MERGED needs. What is worth it is read by its content words: no stop words, no courtesies, no bare numbers.
# MERGED Of a long paste only what stands at its ends is looked for, since that is where people say what they
# MERGED want of it. Not here: what is found, and whether that is good enough (offer.py).


WORDS_MIN = 2
"""Content words that a prompt must have, and that must stand in a hit."""
PROMPT_CHARACTERS_LONG = 1_500
"""Of a longer prompt only the first and last sentences are looked for."""
PROMPT_END_CHARACTERS_MAX = 20_000
"""Of a huge prompt so many from each end are read at all."""
_GIST_CHARACTERS = 500
_END_SENTENCES = 2
_END_CHARACTERS = 400
_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)|(?:!|#\s)[^\n]*\Z")
"""`# Task` with more below it is somebody's document, and `#12` a number."""
_REDACTED = re.compile(r"\[REDACTED:[\w#-]*\]")
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PASTED = re.compile(
    r"\s*[\d\[<>|{}()$%@#=*+~-]| {4,}|\t|\s*(?:at |File \"|Traceback|(?:TRACE|DEBUG|INFO|WARN|ERROR)\b)"
)
"""How the lines of logs, tables, traces and diffs begin."""
_SENTENCE = re.compile(r"\S.*?(?:[.!?]+(?=\s)|$)", re.MULTILINE)
_TOPIC = re.compile(r"(?<![\w./-])[a-z][\w-]*(?:\.[a-z][\w-]*)+(?![\w/.(-])")
_TOPICS_MAX = 5
_NAMED = frozenset({"file", "symbol", "identifier"})
_COURTESIES = frozenset(
    """yes yep yeah yup ok okay nope thanks thank thx ty cheers please pls hi hello hey morning afternoon
    evening lgtm awesome claude bye""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Words that are for the agent and not about anything: never looked for."""
_ELSEWHERE = frozenset(
    map(
        fold,
        """hallo guten morgen abend danke schön vielen dank bitte mach mache weiter weitermachen ja nein genau
        gerne bonjour bonsoir salut merci beaucoup oui vas hola buenos buenas días tardes gracias por favor sí
        vale perfecto continúa sigue olá obrigado obrigada sim ciao grazie avanti привет спасибо большое
        пожалуйста продолжай да хорошо 你好 好的 继续 谢谢 谢谢你 はい ありがとう ありがとうございます
        続けて お願いします""".split(),  # noqa: SIM905  # as above
    )
)
"""The same in other languages: looked for beside other words, for they may mean something there."""
_STEERING = (
    _COURTESIES
    | _ELSEWHERE
    | frozenset(
        """k sure go going ahead continue proceed keep carry next night great perfect nice cool good fine looks
    sounds right correct exactly agreed try retry stop wait never mind lot much well ship make want need
    way thing things back work works""".split()  # noqa: SIM905  # as above
    )
)
"""Words that steer, beside the stop words: they alone are no reason to look."""

ContentWord = frozenset[str]
"""One content word as the index would have it; its parts too if it is an identifier."""


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """What to look for, or why not to look."""

    text: str
    """Empty if it is not worth a look."""
    reason: str
    units: tuple[ContentWord, ...] = ()
    """The content words, once each."""
    names: tuple[str, ...] = ()
    """Files, symbols and identifiers in it, folded."""
    topics: tuple[str, ...] = ()
    """What may be the key of a topic."""


def read_prompt(prompt: str) -> PromptQuery:
    """Read a prompt whose private parts were taken out."""
    bare = _REDACTED.sub(" ", prompt).strip()
    if not bare:
        return PromptQuery(
            "", "nothing of it is to be seen" if prompt.strip() else "it is empty"
        )
    if _COMMAND.match(bare):
        return PromptQuery("", "a command to the client")
    text = shorten_prompt(bare) if len(bare) > PROMPT_CHARACTERS_LONG else bare
    found = content_words(text)
    if len(found) < WORDS_MIN:
        return PromptQuery("", f"it has fewer than {WORDS_MIN} words that say what it is about")
    names = tuple(
        dict.fromkeys(n for n, kind in entities.entities_of_text(text) if kind in _NAMED)
    )
    topics = tuple(dict.fromkeys(_TOPIC.findall(text)))[:_TOPICS_MAX]
    return PromptQuery(_without_courtesies(text), "worth a look", found, names, topics)


def _without_courtesies(text: str) -> str:
    """As words that no memory has, they would make every memory cover less."""
    return WORD.sub(lambda word: "" if fold(word[0]) in _COURTESIES else word[0], text)


def is_repeated(prompt: str, earlier: Iterable[str]) -> bool:
    """Whether the same was asked before, but for case, spacing and punctuation."""
    said = _gist(prompt)
    return any(_gist(one) == said for one in earlier)


def _gist(prompt: str) -> tuple[str, str]:
    return normalised(prompt[:_GIST_CHARACTERS]), normalised(prompt[-_GIST_CHARACTERS:])


def shorten_prompt(text: str) -> str:
    """The first and the last sentences of a long text, without code and logs, each cut."""
    lines = _CODE.sub("\n", text).split("\n")
    own = "\n".join("" if _PASTED.match(line) else line for line in lines)
    found = [s[:_END_CHARACTERS] for s in _SENTENCE.findall(own) if s.strip()]
    if len(found) <= 2 * _END_SENTENCES:
        return "\n".join(found) or text[:_END_CHARACTERS]
    return "\n".join((*found[:_END_SENTENCES], *found[-_END_SENTENCES:]))


def content_words(text: str) -> tuple[ContentWord, ...]:
    """The content words of a text, once each, however they are inflected."""
    found: dict[ContentWord, None] = {}
    for token in words(text):
        folded = fold(token)
        if is_stop_word(token) or folded in _STEERING or not any(c.isalpha() for c in token):
            continue
        parts = terms(token)
        if not token.isascii() and "_" not in token and len(parts) > 1:
            found.update({frozenset({part}): None for part in parts})  # no spaces: pairs
        elif parts and len(folded) > 1:
            found[frozenset(parts)] = None
    return tuple(found)


def count_words_found(worth: PromptQuery, summary: Summary) -> tuple[int, bool]:
    """How many of its content words stand in a memory, and whether one of its names does."""
    text = "\n".join((summary.title, summary.body, *summary.files, *summary.tags))
    # Stemming is what costs here, and a stem begins as its word does, or as a part of it.
    begins = {term[:2] for unit in worth.units for term in unit}
    there = {
        term
        for token in dict.fromkeys(words(text))
        if token[:2].lower() in begins or not (token.isascii() and token[1:].islower())
        for term in terms(token)
    }
    count = sum(bool(unit <= there) for unit in worth.units)
    folded = fold(text) if worth.names else ""
    return count, any(name in folded for name in worth.names)


# MERGED from memd.recall.surface:
# MERGED What is worth showing unasked: hits near to the best one, and none if even the best is weak. Pure.
# MERGED
# MERGED A score compares the hits of one answer and says nothing by itself: it depends on the profile and on
# MERGED the vault. So the floor is on *coverage*, the share of what was asked that stands in a hit, each word
# MERGED weighed by how rare it is among what is seen; 0 is nothing of it, 1 all of it, in any vault and with
# MERGED any profile. Cosine is not used: what is near differs from space to space. So a hit by its meaning
# MERGED alone has coverage 0 and is not shown unasked; who injects memories nobody asked for must rather be
# MERGED silent than wrong. Of a long text only the eight rarest words count as asked, lest its length alone
# MERGED sink everything. The ratio is on the scores.


ASKED_MAX = 8
ROWS_MIN = 50
"""A young vault counts its words as if it had so many rows; else one word that it does not know would
weigh more than all that it does."""


def compute_coverage(
    index: MemoryIndex, rows: Rows, terms: IndexedTerms, unknown: int, among: TermStatistics
) -> Floats:
    """The share of what was asked that stands in each of `rows`, shape (m,), 0 to 1.

    Σ idf of the words that stand there / Σ idf of the eight rarest that were asked, at most 1.
    `unknown` of the words stand nowhere in the vault and are the rarest of all. A phrase or prefix
    counts like a word.
    """
    count = max(among.count, ROWS_MIN)
    having = [among.df(number) for number in terms.numbers]
    having += [int(np.count_nonzero(among.mask[group])) for group in terms.groups]
    weights = [idf(count, number) for number in having]
    standing = [index.postings.contains(number, rows) for number in terms.numbers]
    standing += [is_among(rows, group) for group in terms.groups]
    found = np.zeros(len(rows))
    for weight, stands in zip(weights, standing, strict=True):
        found += weight * stands
    asked = sorted([*weights, *[idf(count, 0)] * unknown], reverse=True)
    most = sum(asked[:ASKED_MAX])
    return np.minimum(found / most, 1.0) if most > 0 else found


def keep_relevant_hits(
    hits: Sequence[Hit], *, floor: float, ratio: float, limit: int
) -> list[Hit]:
    """The hits, best first, whose score is at least `ratio` of the best one's; at most `limit`.

    None if none of these has a coverage of `floor`. A hit by topic key was asked for by name and
    covers everything. For scores below zero the distance counts alike: best − (1 − ratio) · |best|.
    """
    if not hits:
        return []
    best = hits[0].score
    kept = [hit for hit in hits if hit.score >= best - (1.0 - ratio) * abs(best)][:limit]
    strongest = max((coverage_of(hit) for hit in kept), default=0.0)
    return kept if strongest >= floor else []


def coverage_of(hit: Hit) -> float:
    """How much of the question a hit covers, 0 to 1."""
    return 1.0 if hit.topic_rank is not None else hit.coverage or 0.0


def keep_relevant(answer: Answer, wanted: RelevanceGate, limit: int) -> Answer:
    """The answer with only those hits, the others counted and, in the trace, told."""
    kept = keep_relevant_hits(answer.hits, floor=wanted.floor, ratio=wanted.ratio, limit=limit)
    weak = len(answer.hits) - len(kept)
    if not weak:
        return answer
    why = "weak: too far below the best" if kept else "weak: even the best covers too little"
    shown = {hit.summary.id for hit in kept}
    return replace(
        answer,
        hits=tuple(kept),
        suppressed={**answer.suppressed, "weak": weak},
        trace=tuple(
            replace(one, verdict=why) if one.is_hit and one.summary_id not in shown else one
            for one in answer.trace
        ),
    )


# MERGED from memd.recall.offer:
# MERGED Which of the hits for a prompt are shown unasked, and why each of the others is not. Pure.
# MERGED
# MERGED Three things must hold: the best of all covers enough of the prompt (the floor, see surface.py), a
# MERGED hit is not too far below it (the ratio), and two of the prompt's content words stand in the hit, or
# MERGED one name, or it was named by its topic key. What the agent sees already is not shown again, but still
# MERGED is what the others are measured by: the second best of a good answer is no better for it.


@dataclass(frozen=True, slots=True)
class InjectionLimits:
    """What a hit must be; see InjectConfig."""

    floor: float
    ratio: float
    hits: int


@dataclass(frozen=True, slots=True)
class GatedHit:
    """A candidate, whether it is shown, and in words why."""

    hit: Hit
    is_shown: bool
    why: str
    is_close_to_best: bool = True
    """Whether it is not too far below the best, and that one covers enough."""


def gate_hits(
    hits: Sequence[Hit], worth: PromptQuery, seen: Mapping[int, str], limits: InjectionLimits
) -> list[GatedHit]:
    """A verdict for each hit, best first. `seen`: summary id → why the agent has it before it already."""
    if not hits:
        return []
    best = hits[0].score
    bound = best - (1.0 - limits.ratio) * abs(best)
    near = [hit for hit in hits if hit.score >= bound]
    strongest = max((coverage_of(hit) for hit in near[: limits.hits]), default=0.0)
    if strongest < limits.floor:
        why = f"below the floor: {strongest:.2f} of the prompt is covered, {limits.floor:.2f} is asked"
        return [GatedHit(hit, False, why, is_close_to_best=False) for hit in hits]
    offers: list[GatedHit] = []
    chosen: list[Hit] = []
    for hit in hits:
        far = _far(hit, bound)
        why_not = far or seen.get(hit.summary.id)
        if why_not is None and len(chosen) >= limits.hits:
            why_not = "there were enough better ones"
        why_not = why_not or _told(hit, chosen) or _thin(hit, worth)
        offers.append(
            GatedHit(hit, why_not is None, why_not or _why(hit), is_close_to_best=far is None)
        )
        chosen += [hit] if why_not is None else []
    return offers


def _far(hit: Hit, bound: float) -> str | None:
    if hit.score >= bound:
        return None
    return f"too far below the best: {hit.score:.3g}, {bound:.3g} is asked"


def _told(hit: Hit, chosen: Sequence[Hit]) -> str | None:
    """Of one turn one memory is enough: the others tell the same story."""
    mine = (hit.summary.session_id, hit.summary.episode)
    for other in chosen:
        if None not in mine and mine == (other.summary.session_id, other.summary.episode):
            return f"from the same turn as #{other.summary.id}"
    return None


def _thin(hit: Hit, worth: PromptQuery) -> str | None:
    if hit.topic_rank is not None:
        return None
    count, is_named = count_words_found(worth, hit.summary)
    if count < WORDS_MIN and not is_named:
        return f"{count} of the prompt's words stands in it, {WORDS_MIN} are asked"
    return None


def _why(hit: Hit) -> str:
    if hit.topic_rank is not None:
        return "the prompt names its topic"
    return f"covers {coverage_of(hit):.2f} of the prompt, score {hit.score:.3g}"
