"""Titles and quotations of what stands: in words that say what they are about by themselves. Pure."""

import re
from collections.abc import Iterator, Sequence

from memd.distill import sentences
from memd.distill.dialogue.acts import Act, ActKind
from memd.distill.dialogue.chores import is_chore
from memd.distill.dialogue.offers import strip_markup
from memd.distill.episodes import Exchange, Story
from memd.text import content_stems, is_stop_word, stem, unique, words

TITLE_CHARACTERS = 100
LABELS = {
    ActKind.CHOSEN: "Chosen",
    ActKind.AGREED: "Agreed",
    ActKind.DECLINED: "Declined",
    ActKind.DEFERRED: "Put off",
}
_PASSAGE_CHARACTERS = 700
_OUTCOME_CHARACTERS = 400
_TELLING_WORDS_MIN = 3
_STEMS_SHARED_MIN = 2
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_NAMED_MIN = 2
_SAYS_NOTHING = frozenset(map(stem, """
    change commit thing stuff code file way keep leave revert undo back just let use do make get put want need same other part work old new again before
    now well really actually correct right wrong think fine good better best much many be have go take stay still more less version state case approach idea
    solution option remove drop add fix update first last next like as was were there here so too little bit lot everything anything something""".split()))  # noqa: SIM905  # a page of quotes reads worse  # fmt: skip
_POINTS = re.compile(
    r"\b(?:this|that|these|those|it|them|so|there|here|one|both|either|neither)\b", re.IGNORECASE
)
_PUT_OFF_WORDS_MIN = 2
_NOTES_FOR_LATER = re.compile(
    r"^(?:(?:ok(?:ay)?|sure|good|yes|agreed|understood|makes sense|got it|perfect)\b[\s,.!—–-]*)*(?:i'll|i will|let's|let me|we'll|we can) (?:\w+ly )?(?P<what>.*\b(?:future|later|backlog|follow[- ]?up|postpone\w*|defer\w*|next (?:session|time|release|version))\b.*)$",
    re.IGNORECASE,
)
_POINTS_ONLY = re.compile(
    r"\W*(?:(?:keep|continue) (?:on )?(?:doing|to do) )?(?:this|that|it|these|those|them|so)\b(?! \w+ing\b)(?:\W*$| (?:as|from|going|moving|in|every|each|always|by)\b)",
    re.IGNORECASE,
)
_AGREEMENT = re.compile(
    r"^\W*(?:you(?:'re| are) (?:absolutely |totally |completely |quite )?(?:right|correct)|good (?:point|catch|call|idea)|great (?:point|idea)|got it|exactly|agreed|makes sense|understood|right)\W+(?:that's [^.]{3,30}\.\s+)?",
    re.IGNORECASE,
)
_WONDERS = re.compile(
    r"^.*?\b(?:what do you think (?:about|of)|i wonder(?:ed)? (?:if|whether)(?: it (?:makes|would make) sense to)?|(?:does|would|do you think) (?:it|that) makes? sense to|should we|how about|what about)\s+",
    re.IGNORECASE,
)
_ASKS_OPINION = re.compile(
    r"[\s,.]*\b(?:what do you think|thoughts|wdyt|ok|right)\W*$", re.IGNORECASE
)
_WORKS = re.compile(
    r"^\W*(?:that(?:'s| is) (?:a|an|the|much|indeed|what)\b|let me|i'll|i will|now let|i need|i can|going to|looking|checking)\b",
    re.IGNORECASE,
)


def clip_line(text: str, limit: int) -> str:
    """A text on one line, cut after so many characters."""
    return sentences.clip(" ".join(text.split()), limit)


def read_first_words(story: Story) -> str:
    """What the agent said first after the prompt."""
    said = sorted((*story.texts, *story.answers), key=lambda one: (one.at, one.event_id))
    return said[0].text if said else ""


def quote_before(before: Sequence[Exchange]) -> list[str]:
    """The end of what the agent had said before, as a line of a body."""
    if not before or before[0].answer is None:
        return []
    passage = _last_passage(before[0].answer.text)
    return [f"Assistant before: “{clip_line(strip_markup(passage), _PASSAGE_CHARACTERS)}”"]


def _last_passage(text: str) -> str:
    """The end of a message, from the beginning of a line on."""
    if len(text) <= _PASSAGE_CHARACTERS:
        return text
    at = text.find("\n", len(text) - _PASSAGE_CHARACTERS)
    return text[at if at >= 0 else -_PASSAGE_CHARACTERS :].strip()


def quote_outcome(story: Story) -> list[str]:
    """What the agent said at once, and that it did in the end, as lines of a body."""
    said = unique((read_first_words(story), story.answer if story.edits else ""))
    return [
        f"Assistant then: “{clip_line(strip_markup(text), _OUTCOME_CHARACTERS)}”"
        for text in said
        if text
    ]


def title_act(act: Act, prompt: str, before: Sequence[Exchange], state: str) -> str:
    """What was chosen, agreed, declined or put off, with its subject."""
    label = LABELS[act.kind]
    if act.restriction:
        return _finish(f"{label}: {_restrict(act, before, TITLE_CHARACTERS - len(label) - 2)}")
    if act.kind is ActKind.AGREED and state:
        return _finish(f"{label}: {state}")
    if act.kind is ActKind.DECLINED and is_chore(act.subject):
        referent = find_referent(
            prompt, before[0].answer.text if before and before[0].answer else ""
        )
        return _finish(f"Left as it is: {referent or act.subject}")
    if act.kind is ActKind.AGREED and _count_telling(act.subject) < _TELLING_WORDS_MIN:
        return _finish(f"{label}: {_find_topic(act, before) or act.subject}")
    subject = f"{label}: {act.subject}"
    has_room = len(subject) <= TITLE_CHARACTERS * 2 // 3 and bool(act.question)
    is_short = _count_telling(act.subject) < _TELLING_WORDS_MIN
    if (is_short or has_room) and (topic := _find_topic(act, before)):
        subject = f"{subject} ({topic})"
    return _finish(subject)


def _restrict(act: Act, before: Sequence[Exchange], room: int) -> str:
    """What was chosen and what restricts it, of which neither is cut off for the other."""
    restriction = sentences.clip(act.restriction, room // 2)
    left = room - len(restriction) - 2
    is_short = _count_telling(act.subject) < _TELLING_WORDS_MIN
    topic = f" ({_find_topic(act, before)})" if is_short else ""
    subject = act.subject.rstrip(" .:;,")
    subject += topic if len(subject + topic) <= left else ""
    return f"{sentences.clip(subject, left)}, {restriction}"


def _find_topic(act: Act, before: Sequence[Exchange]) -> str:
    """What a choice was about: the agent's question, if it says so, else what the user had asked for."""
    asked = [e.prompt for e in before]
    for text in (
        (*asked[:1], act.question, *asked[1:])
        if act.kind is ActKind.AGREED
        else (act.question, act.heading, *asked)
    ):
        if sentences.is_command(text):
            continue
        sentence = next(iter(sentences.split_sentences(text)), "").rstrip(" ?.:")
        sentence = _ASKS_OPINION.sub("", _WONDERS.sub("", sentence)).strip(" ,?.:")
        if _count_telling(sentence) >= _TELLING_WORDS_MIN - 1:
            return sentences.strip_politeness(sentence)
    return ""


def title_statement(said: str, first: str, state: str) -> str:
    """A statement as a title: the agent's own words for it where the user's only point at something."""
    if _POINTS.search(said) and _count_telling(said) < 2 * _TELLING_WORDS_MIN:
        if state:
            return _finish(state)
        if restated := find_restated(first):
            return _finish(restated)
    return _finish(said)


def is_vague(title: str) -> bool:
    """Whether a title does not say what it is about: `Just keep the commits as they were`."""
    named = [
        w for w in words(title) if not is_stop_word(w) and stem(w.lower()) not in _SAYS_NOTHING
    ]
    return not named or (len(named) < _NAMED_MIN and _POINTS.search(title) is not None)


def points_only(said: str) -> bool:
    """Whether a text names its object by a pronoun alone: `it`, `keep doing this as a matter of course`."""
    return _POINTS_ONLY.match(said) is not None


def find_put_off(said: str, first: str) -> str:
    """What is put off: the user's words, or the agent's for `that`; empty if neither says what."""
    if not points_only(said) and not is_vague(said) and _count_telling(said) >= _PUT_OFF_WORDS_MIN:
        return said
    spoken = sentences.split_sentences(strip_markup(first))[:2]
    noted = (match["what"] for one in spoken if (match := _NOTES_FOR_LATER.match(one)))
    return next((what.rstrip(".:! ") for what in noted if not is_vague(what)), "")


def find_subject(before: Sequence[Exchange]) -> str:
    """What the agent had last reported, which `that` and `those changes` point at; else what had been asked for."""
    heard = before[0] if before else None
    if heard is None:
        return ""
    answer = heard.answer.text if heard.answer else ""
    told = (s.rstrip(":") for s in _read_sentences(answer) if not s.endswith("?"))
    for text in (*told, *(e.prompt for e in before)):
        is_work = is_chore(text) or _WORKS.match(text) is not None
        if not is_work and not is_vague(text) and _count_telling(text) >= _TELLING_WORDS_MIN:
            return text
    return ""


def add_subject(title: str, before: Sequence[Exchange]) -> str:
    """A title that says what it is about; empty if nobody said it."""
    if not is_vague(title):
        return title
    subject = find_subject(before)
    return _finish(f"{title.rstrip('. ')} – {subject}") if subject else ""


def find_restated(first: str) -> str:
    """How the agent put what the user had said: the sentence after `You're right`."""
    match = _AGREEMENT.match(first)
    if match is None:
        return ""
    for sentence in sentences.split_sentences(
        strip_markup(first[match.end() :].split("\n\n", maxsplit=1)[0])
    ):
        if not _WORKS.match(sentence) and _count_telling(sentence) >= _TELLING_WORDS_MIN:
            return sentence.rstrip(":")
    return ""


def find_mention(name: str, before: Sequence[Exchange]) -> str:
    """The sentence of the agent's last message that has a name of one word; empty if none has."""
    wanted, answer = set(content_stems(name)), before[0].answer if before else None
    for sentence in _read_sentences(answer.text) if answer else ():
        has_name = bool(wanted) and wanted <= set(content_stems(sentence))
        if has_name and _count_telling(sentence) >= _TELLING_WORDS_MIN:
            return sentence.rstrip(":")
    return ""


def find_referent(said: str, answer: str) -> str:
    """The sentence of an answer that shares most words with what the user says to it; empty if none does."""
    mine = frozenset(content_stems(said))
    best, found = _STEMS_SHARED_MIN - 1, ""
    for sentence in _read_sentences(answer):
        shared = len(mine & frozenset(content_stems(sentence)))
        if shared > best and not sentence.endswith(("?", ":")):
            best, found = shared, sentence
    return found


def _read_sentences(text: str) -> Iterator[str]:
    for line in _FENCE.sub("\n", text).split("\n"):
        yield from (strip_markup(s) for s in sentences.split_sentences(line))


def _count_telling(text: str) -> int:
    return sum(not is_stop_word(word) for word in words(text))


def _finish(title: str) -> str:
    return sentences.format_title(title.rstrip("?! "), TITLE_CHARACTERS)
