"""Keep out what the user rejected, in every wording that memd judges the same, from whatever source it comes.

A rejected memory stays in the vault, hidden, as the measure of what repeats it. Whatever writes memories asks here:
`find_rejected` before, where the speaker can be told, and `reject_repeats` after, where nobody listens.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.belief.claims import TokenType, list_keys, parse_claims, statement_text, word_key
from memd.belief.compare import EXACT_ASPECTS, compare_claims
from memd.belief.notes import split_note
from memd.belief.proof import MIXED_WORD
from memd.caches import cached
from memd.errors import BadRequest, UnknownId
from memd.models import GLOBAL_PROJECT, STATED_KINDS, Authority, Kind, Summary
from memd.store import fulltext, ledger, links, projects, reviews, summaries
from memd.store.database import Connection
from memd.store.reviews import Review
from memd.text import content_stems, digest, literal_form

_ALIKE_MAX = 50
"""Memories that are compared with what is being rejected."""
_PARSED_MAX = 512
_OVERLAP_MIN = 0.5
"""The share of content words from which two texts that agree say the same, though one says more."""
_SHARED_MIN = 0.5
"""The share of the shorter text's content words that two texts about one saying have in common."""
_SHARED_STEMS_MIN = 2
_QUOTED_MIN = 4
"""Words of a quote that says what the sentence says in which it stands."""
_FRAME = frozenset(map(word_key, Kind)) | list_keys("frame of a statement")
"""Words that say whose statement it is, what kind of or since when it holds, and nothing of what it is about."""
_TURNING = EXACT_ASPECTS | {"negation", "antonym", "order", "direction"}
"""Differences that make another statement of the same words."""


@dataclass(frozen=True, slots=True)
class StatedWords:
    """The words of a memory, in each of its wordings, and its sources."""

    texts: tuple[str, ...]
    is_stated: bool = True
    """False: it tells what was done, so only all of its text says the same."""
    quotes: frozenset[str] = frozenset()
    events: frozenset[int] = frozenset()
    is_agents: bool = False
    """Whether an agent words it, who was told that it is not wanted."""


def find_rejected(tx: Connection, mine: StatedWords, project_id: int | None) -> Summary | None:
    """Return what the user rejected and this states again; `project_id` None: it is to hold everywhere."""
    for one in reviews.rejected_summaries(tx, project_id):
        if _is_repeated(_read_statement(tx, one), mine):
            return one
    return None


def leave_retracted(
    tx: Connection, said: Sequence[tuple[int, str]], project_id: int
) -> Iterator[str]:
    """Yield these sentences of the user's, given with their times, except those that no longer hold.

    That is what repeats a rejected note, what a forgotten memory quoted, what was replaced after it was said, and what
    ended something until that was undone.
    """
    if not said:
        return
    rejected = [_read_statement(tx, one) for one in reviews.rejected_summaries(tx, project_id)]
    replaced = read_replaced(tx, project_id, min(at for at, _ in said))
    times = {at for at, _ in said}
    undone = [one for one in reviews.undone_endings(tx, project_id) if one.at in times]
    idle = {quote for one in undone for quote in _read_statement(tx, one).quotes}
    for at, text in said:
        if any(quote in literal_form(text) for quote in idle):
            continue
        mine = make_statement("", text, text, is_agents=True)
        # What stands behind a colon may have been quoted alone.
        parts = [part for part in (text, text.partition(": ")[2]) if part]
        if any(
            find_replacing(part, at, replaced) or ledger.is_forgotten(tx, name_words(part))
            for part in parts
        ):
            continue
        if not any(_is_repeated(one, mine) for one in rejected):
            yield text


def read_replaced(tx: Connection, project_id: int, since: int) -> dict[str, tuple[int, int]]:
    """Quote of a memory of a project, said since a time, that was replaced → when what replaces it was said, and its id."""
    found: dict[str, tuple[int, int]] = {}
    for one, at, newer_id in reviews.replaced_statements(tx, project_id, since):
        for quote in _read_statement(tx, one).quotes:
            found[quote] = max((at, newer_id), found.get(quote, (0, 0)))
    return found


def find_replacing(said: str, at: int, replaced: Mapping[str, tuple[int, int]]) -> int | None:
    """Return the id of what replaces what these words, said at a time, are or have in them; None if nothing does."""
    form = literal_form(said)
    newer = (
        newer
        for quote, newer in replaced.items()
        if at <= newer[0] and (form == quote or _has_quote(form, quote))
    )
    return max(newer, default=(0, None))[1]


def _has_quote(form: str, quote: str) -> bool:
    return len(quote.split()) >= _QUOTED_MIN and f" {quote} " in f" {form} "


def note_forgotten_words(tx: Connection, one: Summary, now: int) -> None:
    """Keep the hashes of what a memory that is being forgotten quotes, so that it is not told from what stays."""
    for quote in _read_statement(tx, one).quotes:
        ledger.record_forgotten(tx, name_words(quote), now)


def name_words(text: str) -> str:
    """Return a hash of a sentence, the same for all that differ only in spacing, case and punctuation."""
    return digest("words", literal_form(text))


def make_statement(  # the parts of a note
    title: str, text: str, quote: str = "", event_id: int | None = None,
    *, why: str = "", is_agents: bool = False,
) -> StatedWords:  # fmt: skip
    """The statement of a note that is not written yet; its reason is shown with it."""
    return StatedWords(
        (text, title, why),
        quotes=frozenset({literal_form(quote)} if quote else ()),
        events=frozenset() if event_id is None else frozenset({event_id}),
        is_agents=is_agents,
    )


def _read_statement(tx: Connection, one: Summary) -> StatedWords:
    note = split_note(one.body)
    is_stated = one.kind in STATED_KINDS or one.source == "agent"
    texts = (note.text, one.title) if is_stated else ()
    sources = links.sources_of(tx, one.id)
    quotes = (note.said, note.quoted, *(quote for _, quote in sources))
    return StatedWords(
        (*texts, statement_text(one.title, one.body)),
        is_stated,
        frozenset(literal_form(quote) for quote in quotes if quote),
        frozenset(event for event, _ in sources),
        is_agents=one.authority < Authority.USER_PROMPT,
    )


def _is_repeated(rejected: StatedWords, mine: StatedWords) -> bool:
    is_same_saying = bool(rejected.quotes & mine.quotes or rejected.events & mine.events)
    is_stated = rejected.is_stated and mine.is_stated
    return any(
        _says_again(one, other, is_same_saying, mine.is_agents, is_stated)
        for one in rejected.texts
        for other in mine.texts
        if one and other
    )


def _says_again(
    rejected: str, mine: str, is_same_saying: bool, is_agents: bool, is_stated: bool
) -> bool:
    rejected, mine = _strip_signs(rejected), _strip_signs(mine)
    theirs, ours = _stems(rejected), _stems(mine)
    shared = len(theirs & ours)
    if not is_stated:
        return theirs == ours and literal_form(rejected) == literal_form(mine)
    if not theirs or not shared:
        return literal_form(rejected) == literal_form(mine)
    part = shared / min(len(theirs), len(ours))
    if part < _SHARED_MIN:
        return False
    found = compare_claims(parse_claims(rejected), parse_claims(mine))
    if found.agrees:
        return found.overlap >= _OVERLAP_MIN or not found.lost
    # Two that both deny the same may do it in other words: `never push`, `don't ever push`.
    turns = {
        one.aspect
        for one in found.differences
        if one.aspect != "negation" or not _content(one.was) & _content(one.now)
    }
    if shared < _SHARED_STEMS_MIN or not _TURNING.isdisjoint(turns):
        return False
    one, other = _content(rejected), _content(mine)
    # An agent was told what is not wanted: it also may not say the same with words added or left out.
    is_part = is_agents and bool(one and other) and (one <= other or other <= one)
    is_again = "negation" not in found.aspects and (is_same_saying or is_part)
    return is_again or (bool(one) and one == other)


_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁһԛԝАВЕКМНОРСТХοαενικρτυχ", "aeopcyxijsdhqwABEKMHOPCTXoaevikptux"
)


@cached(_PARSED_MAX)
def _strip_signs(text: str) -> str:
    """Strip accents, pictures and invisible characters, and spell words of mixed alphabets in one."""
    split = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    plain = "".join(c for c in split if not _is_sign(c))
    plain = MIXED_WORD.sub(lambda word: word[0].translate(_LOOK_ALIKES), plain)
    return unicodedata.normalize("NFC", plain)


def _is_sign(char: str) -> bool:
    category = unicodedata.category(char)
    # Further on, marks are vowels and tones, which tell words apart.
    return category in {"Cf", "So"} or (category == "Mn" and char < "\u0900")


@cached(_PARSED_MAX)
def _content(text: str) -> frozenset[str]:
    """Return the words of a text's subject: no numbers, and no `always`, `each` or `only`."""
    kinds = {TokenType.WORD, TokenType.PATH, TokenType.IDENTIFIER}
    return (
        frozenset(token.key for token in parse_claims(text).tokens if token.type in kinds) - _FRAME
    )


@cached(_PARSED_MAX)
def _stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


# ── The user's verdicts ────────────────────────────────────────────────────────────────────────


def reject(tx: Connection, summary_id: int, now: int) -> tuple[int, ...]:
    """Reject a memory, with all in its project that says the same; return the ids of the others. UnknownId."""
    one = summaries.get_summary(tx, summary_id)
    if one is None:
        raise UnknownId(f"there is no memory #{summary_id}")
    reviews.put_review(tx, Review(one.id, "rejected", now))
    return reject_alike(tx, one.id, now)


def reject_alike(tx: Connection, summary_id: int, now: int) -> tuple[int, ...]:
    """Hide what says the same as a memory that was just rejected; return the hidden ids."""
    one = summaries.get_summary(tx, summary_id)
    return reject_repeats(tx, _find_alike(tx, one), now) if one else ()


def reject_repeats(tx: Connection, summary_ids: Iterable[int], now: int) -> tuple[int, ...]:
    """Hide those of these memories that repeat a rejected one; return the hidden ids.

    What the user enters by hand afterwards stands: then the rejection is undone.
    """
    hidden: list[int] = []
    for number in summary_ids if reviews.has_rejected(tx) else ():
        mine = summaries.get_summary(tx, number)
        if mine is None:
            continue
        if mine.rejected_at is not None:
            if mine.authority is Authority.USER_HAND and mine.updated_at > mine.rejected_at:
                reviews.drop_review(tx, mine.id)
            continue
        key = projects.project(tx, mine.project_id)
        place = None if key is None or key.key == GLOBAL_PROJECT else mine.project_id
        other = find_rejected(tx, _read_statement(tx, mine), place)
        if other is None and mine.kind is Kind.DISCOVERY:
            # A turn in which nothing was done but to say it again bears it as its title.
            other = find_rejected(tx, make_statement("", mine.title), place)
            other = other if other and _content(mine.title) <= _content(other.title) else None
        if other is None or other.rejected_at is None:
            continue
        is_by_hand = mine.standing is Authority.USER_HAND and mine.source == "user"
        if is_by_hand and mine.updated_at > other.rejected_at:
            reviews.drop_review(tx, other.id)
            continue
        reviews.put_review(tx, Review(mine.id, "rejected", min(now, other.rejected_at), other.id))
        hidden.append(mine.id)
    return tuple(hidden)


def _find_alike(tx: Connection, one: Summary) -> list[int]:
    """The live memories of its project that share half of its words."""
    text = statement_text(one.title, one.body)
    stems = list(dict.fromkeys(content_stems(f"{one.title}\n{text}")))
    if not stems:
        return []
    found = summaries.ids_sharing_most_keys(
        tx, (one.project_id,), STATED_KINDS, stems, limit=_ALIKE_MAX
    )
    return [number for number in found if number != one.id]


def take_back(tx: Connection, summary_id: int) -> Review:
    """Undo the user's review of a memory: what it hid shows again. BadRequest if there is none."""
    said = reviews.read_review(tx, summary_id)
    if said is None:
        raise BadRequest(f"#{summary_id} was not reviewed; there is nothing to take back")
    reviews.drop_review(tx, said.follows or summary_id)
    if said.follows is None:
        return said
    if said.verdict != "everywhere":
        return replace(said, summary_id=said.follows)
    fulltext.remove_passages(tx, said.follows)
    summaries.delete_summary(tx, said.follows)
    return replace(said, follows=None)


def explain_refusal(rejected: Summary, when: str) -> str:
    """Explain to whoever asked for it why something is not remembered, and what to do."""
    return (
        f"the user rejected this on {when} (#{rejected.id}: “{rejected.title}”), so it is not stored, in no other"
        f" wording either. Do not act on it. If it holds after all, tell the user, who can run"
        f" `memd review --undo {rejected.id}` in a terminal of their own"
    )


def list_rejected(tx: Connection, project_ids: Sequence[int] | None) -> list[Summary]:
    """Return what the user rejected in these projects, the latest first."""
    found = [
        one
        for one in reviews.rejected_summaries(tx)
        if project_ids is None or one.project_id in project_ids
    ]
    return sorted(found, key=lambda one: (one.rejected_at or 0, one.id), reverse=True)
