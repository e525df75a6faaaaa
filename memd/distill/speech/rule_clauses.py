"""Which clause of a sentence is a standing instruction, a preference, a fact to keep or an open task. Pure.

A clause counts only where it stands by itself: at the head of the sentence, or after a clause that is known to be
harmless. It must be an order or a wish in the present, without a condition that may not hold, and about work in
general: `always pass the flag here` is an order for one place, `we never close the socket` a description.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.distill.sentences import strip_politeness
from memd.distill.speech import generality, verbs
from memd.distill.speech.assertions import is_asked
from memd.distill.speech.own_words import OwnSentence
from memd.distill.speech.pasted import OPAQUE, orders_text
from memd.models import Kind
from memd.patterns import compile_lazily
from memd.text import is_stop_word, words

_SENTENCE_CHARACTERS_MAX = 400
_TELLING_WORDS_MIN = 2


@dataclass(frozen=True, slots=True)
class RuleClause:
    """What is to be remembered of a sentence."""

    kind: Kind
    rule: str
    text: str
    """The clause as it was said."""
    confidence: float


# --- the parts of a clause ---

_POLITE = r"(?:(?:please|also|just|then|so|but|and|ok|okay|again|btw|oh|now|claude|really)[\s,]+)*"
_HERE = (
    r"(?:in|for|on|across|throughout) (?:this|our|the|my|every|all|any|all of our|these) "
    r"(?:whole |entire )?(?:repo|repository|repos|project|projects|codebase|code base|code|monorepo|workspace|team|house|org|company)"
)
_LASTING = (
    r"(?:from (?:now|here|today|this point) on(?:wards?|ward)?(?: out| in)?|henceforth|going forward|moving forward"
    r"|starting (?:now|today)|for the future|in (?:the )?future|as a (?:general |standing |permanent )?rule)"
)
_TIME = rf"(?:(?:{_LASTING}|{_HERE}|in general|generally|at all times|as always|once and for all)[\s,:]+)*"
_CONDITION = (
    r"(?:(?:if|when|whenever|each time|every time|any time|before|after|once) (?:you|we)(?:'re| are)? (?!were\b|had\b|would\b|could\b|did\b"
    r"|are (?:done|finished|ready|through)\b|\w+ed\b)[^,;.]{2,90},\s*(?:then |please |you must |you should |we )*"
    r"|(?:before|after|when|while|on) (?:every |each |any )?\w+ing\b[^,;.]{0,60},\s*(?:please )?)?"
)
_FRAME = (
    r"(?:(?:you|we) (?:really )?(?:must|should|shall|need to|have to|ought to|are to|will)\s+"
    r"|i(?: really| do)? (?:want|need|expect|ask|told|would like|'d like) you to\s+|i(?:'d| would) like (?:you|us) to\s+"
    r"|(?:make|be) (?:very |really |absolutely )?(?:sure|certain) (?:that )?(?:(?:you|we)\s+|to\s+)|be careful to\s+|take care to\s+"
    r"|remember,? (?:that )?(?:(?:you|we) (?:must|should) |(?:you|we) |to )?|(?:keep|bear) in mind (?:that (?:you|we) (?:must |should )?|to )"
    r"|try to\s+|it(?:'s| is) (?:very |really )?(?:important|crucial|essential) (?:that (?:you|we) |to |for you to )"
    r"|you(?:'re| are) (?:supposed )?to\s+)?"
)
_ALWAYS = r"(?:(?P<always>always|never,? ever|never|only ever)(?: ever)?\s+(?:please )?)"
_VERB = r"(?!(?:have|need) to\b)(?P<verb>[a-z]+(?:-[a-z]+)?)\b"
_NO = r"(?:don'?t|don’t|do not|must not|mustn'?t|should not|shouldn'?t|shall not|may not|can not|cannot)"
_END = r"[\s.!]*$"

_ALWAYS_CLAUSE = compile_lazily(
    rf"{_POLITE}{_TIME}{_POLITE}(?P<clause>{_CONDITION}{_TIME}{_POLITE}{_FRAME}{_POLITE}(?P<rest>{_ALWAYS}{_VERB}.*))",
    re.IGNORECASE,
)
_WE_CLAUSE = compile_lazily(
    rf"{_POLITE}{_TIME}(?P<subject>we) (?P<rest>(?P<always>always|never)\s+{_VERB}(?P<object>.*))",
    re.IGNORECASE,
)
_LASTING_CLAUSE = compile_lazily(
    rf"{_POLITE}(?P<rest>{_LASTING}[\s,:]+{_POLITE}{_TIME}{_POLITE}{_FRAME}(?:(?:you|we)(?: must| should| will|'ll)? )?{_POLITE}"
    rf"(?:{_NO} (?:ever )?|not |always |never |only |no longer |all )?{_VERB}.*)",
    re.IGNORECASE,
)
_LASTING_NOUN = compile_lazily(
    rf"{_POLITE}(?P<rest>{_LASTING}[\s,:]+{_POLITE}(?:no (?:more )?[a-z]|only [a-z]|(?:all|every|each|any) (?:[\w-]+ ){{1,5}}"
    r"(?:must|should|goes?|ha(?:s|ve) to|needs? to|gets?|will|is to|are to)\b).*)",
    re.IGNORECASE,
)
_LASTING_LAST = compile_lazily(
    rf"{_POLITE}{_FRAME}(?P<rest>(?:we )?(?:{_NO} |always |never |only )?{_VERB}[^,;]*?[\s,]+{_LASTING}){_END}",
    re.IGNORECASE,
)
_NOT_EVER = compile_lazily(
    rf"{_POLITE}{_TIME}(?:you |we )?(?P<rest>(?:{_NO} ever|under no circumstances(?: should you| must you| may you)?|on no account) {_VERB}.*"
    rf"|i (?:never want you to|don'?t (?:ever )?want you to ever) {_VERB.replace('verb', 'wanted')}.*)",
    re.IGNORECASE,
)
_NOT_AGAIN = compile_lazily(
    rf"{_POLITE}(?:you )?(?P<rest>{_NO} {_VERB}[^;]*\b(?:again|any ?more|ever again)\b[!.]*)\s*$",
    re.IGNORECASE,
)
_WHENEVER = compile_lazily(
    rf"{_POLITE}(?P<rest>(?:whenever|every time|each time|any time) (?:you|we)\b[^,;]{{2,90}},\s*(?:then |please |also )*(?:you (?:must|should|need to|have to) )?"
    rf"(?:{_NO} )?{_VERB}.*)",
    re.IGNORECASE,
)
_ALL_MUST = compile_lazily(
    rf"{_POLITE}{_TIME}(?P<rest>(?:all |any |our )?(?P<subject>[a-z-]+(?: [a-z-]+)?s) (?:must|should|have to|need to|shall) (?:always|never) {_VERB}.*)",
    re.IGNORECASE,
)
_BEFORE_EVERY = compile_lazily(
    rf"{_POLITE}{_TIME}(?P<rest>(?P<verb>run|ask|rebase|update|bump|check|execute|pull|fetch|format|lint|test)\b(?:(?!\bthat\b|\bwhich\b|\bhook\b)[^;])*"
    r"\b(?:before|after) (?:every|each|any) (?:single )?(?:commit|push|merge|release|deploy|deployment|pr|pull request|change|edit|session))\b.*",
    re.IGNORECASE,
)
_PREFER = compile_lazily(
    rf"{_POLITE}{_TIME}(?P<rest>(?:i|we)(?:'d| would)?(?: really| strongly| generally| much| usually| always)? prefer (?P<object>.+))",
    re.IGNORECASE,
)
_HATE_WHEN = compile_lazily(
    rf"{_POLITE}(?P<rest>i (?:really |absolutely )?(?:don't like|do not like|dislike|hate|like) (?:it )?when (?P<object>.+))",
    re.IGNORECASE,
)
_MY_CHOICE = compile_lazily(
    rf"{_POLITE}(?P<rest>my (?:preference|preferred [\w-]+|favou?rite [\w-]+) (?:is|are) (?P<object>.+))",
    re.IGNORECASE,
)
_USE_NOT = compile_lazily(
    r"(?:please )?(?P<rest>use (?P<object>[^\s,]+(?: [^\s,]+)?),? (?:not|and not|never|instead of|rather than) [^\s,]+(?: [^\s,]+)?)"
    + _END,
    re.IGNORECASE,
)
_REMEMBER_FACT = compile_lazily(
    r"(?:(?:and|also|please|but) )*(?P<how>remember|don't forget|do not forget|note|keep in mind|bear in mind|be aware)(?: that|:)\s+(?P<rest>.+)",
    re.IGNORECASE,
)
_FYI_FACT = compile_lazily(
    r"(?:fyi|for your information|for the record|(?:just )?(?:so )?you know(?=,)|heads[- ]up)\b[\s,:–—-]*(?:that )?(?P<rest>.+)",
    re.IGNORECASE,  # dashes as people type them
)
_AT_WORK = compile_lazily(r"\b(?:is|are|'s|'re) (?:just |still |currently |now )*(?:working|adding|doing|trying|going|running|fixing|looking|making)\b", re.IGNORECASE)  # fmt: skip
"""Somebody is at it now."""
_TODO = compile_lazily(
    r"(?:a )?to-?do\s*[:–—-]\s+(?P<rest>.+)", re.IGNORECASE
)  # dashes as people type them
_REMIND = compile_lazily(
    rf"{_POLITE}remind (?:me|us) (?:to|about|that)\s+(?P<rest>.+)", re.IGNORECASE
)
_LATER = r"(?:later|next time|some ?day|at some point|another time|in (?:a|the) (?:later|next|future) (?:session|step|release|version|pr|sprint))"
_NEXT_TIME = compile_lazily(
    rf"{_POLITE}(?P<rest>next time(?: (?:you|we)\b[^,;]{{2,80}},)?[\s,]+(?:please |then |just |{_NO} |let me |always |never )*{_VERB}.+)",
    re.IGNORECASE,
)
"""`Next time you change something, let me commit` is for every time."""
_LATER_FIRST = compile_lazily(
    rf"{_POLITE}(?P<rest>(?:{_LATER}|tomorrow|next week),? (?:on,? )?(?:we|you|let'?s) ?(?:should|must|need to|have to|can|want to)? ?{_VERB}.+)",
    re.IGNORECASE,
)
_LATER_LAST = compile_lazily(
    rf"{_POLITE}(?P<rest>(?:we|you) (?:should|must|need to|have to) (?:also |still |really )?{_VERB}[^;]*\b{_LATER})\b(?P<tail>.*)",
    re.IGNORECASE,
)

_CLAUSE_START = compile_lazily(
    r"[,;]\s+(?:(?:and|but|so|then|also)\s+)?|\s+(?:and|but|so|then)\s+(?:also\s+|please\s+|then\s+)?|\s[–—-]{1,2}\s+",
    re.IGNORECASE,  # dashes as people type them
)
_ABSOLUTE = compile_lazily(r"\b(?:always|never)\b", re.IGNORECASE)
_ABSOLUTES_OF_SLOGAN = 3
_MARKER = compile_lazily(rf"\b(?:always|never|ever|{_LASTING})\b", re.IGNORECASE)
_LEAD_OF_RULE = compile_lazily(
    r"\b(?:rules?|instructions?|conventions?|important|remember|note|reminder|please|one (?:more )?thing|ps|nb|keep in mind|bear in mind|don't forget|request|always|never)\b"
)


def find_rule_clause(sentence: OwnSentence, own: Sequence[OwnSentence]) -> RuleClause | None:
    """The first clause of an affirmed sentence that is to be remembered; `own` is all that was said with it."""
    if len(sentence.text) > _SENTENCE_CHARACTERS_MAX or _is_slogan(sentence.said):
        return None
    said, offset = _drop_politeness(sentence)
    reader = _Reader(sentence, own, said, offset)
    for start in _clause_starts(said):
        if start and not reader.is_harmless(said[:start]):
            return None
        if found := reader.read(start):
            return found
    return None


def _is_slogan(said: str) -> bool:
    """Whether this says `never` again and again, as nobody gives orders."""
    return len(_ABSOLUTE.findall(said)) >= _ABSOLUTES_OF_SLOGAN


def _drop_politeness(sentence: OwnSentence) -> tuple[str, int]:
    """(what is said without thanks and greetings, where it begins in the sentence)."""
    said = sentence.said.rstrip()
    polite = strip_politeness(said)
    at = said.find(polite)
    return polite, sentence.start + max(at, 0)


def _clause_starts(said: str) -> Iterator[int]:
    yield 0
    yield from (match.end() for match in _CLAUSE_START.finditer(said))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the clauses of one sentence. `said` is the masked text; `offset` its place in the sentence."""

    sentence: OwnSentence
    own: Sequence[OwnSentence]
    said: str
    offset: int

    def is_harmless(self, before: str) -> bool:
        """Whether the clauses before another one leave it to be what it looks like."""
        if _MARKER.search(before) or generality.HEDGE.search(before) or orders_text(before):
            return False
        if generality.TURNED_DOWN.search(before):
            return False
        heads = [word.lower().replace("’", "'") for word in words(before)[:2]]  # as people type it
        return any(generality.is_english(head) for head in heads)

    def read(self, start: int) -> RuleClause | None:
        """The rule that the clause at `start` states, if it states one."""
        for find in (
            self._read_lead_fact, self._read_task, self._read_lasting, self._read_forbidden, self._read_always, self._read_habit,
            self._read_preference, self._read_fact,
        ):  # fmt: skip
            found = find(start)
            if found is not None:
                return found if self._is_telling(found) else None
        return None

    def _make(self, kind: Kind, name: str, match: re.Match[str], confidence: float, group: str = "rest") -> RuleClause:  # fmt: skip
        start, end = match.span(group)
        text = self.sentence.text[self.offset + start : self.offset + end].strip()
        return RuleClause(kind, f"{kind}:{name}", text, confidence)

    def _is_telling(self, found: RuleClause) -> bool:
        telling = {word for word in words(found.text) if not is_stop_word(word)}
        return len(telling - {"again", "From", "from", "ever", "always"}) >= _TELLING_WORDS_MIN

    def _is_open(self, start: int, match: re.Match[str]) -> bool:
        """Whether the clause, up to its reason, is only thought of, turned down or talked about."""
        verb_end = match.end("verb")
        rest = self.said[verb_end:]
        reason = generality.REASON.search(rest)
        clause = rest[: reason.start()] if reason else rest
        return bool(
            generality.HEDGE.search(self.said[start:verb_end])
            or re.search(r"\b(?:would|could|might|maybe|perhaps)\b", clause, re.IGNORECASE)
            or generality.MENTIONED.match(rest)
        )

    def _is_for_one_place(self, match: re.Match[str]) -> bool:
        said = match.group()
        return bool(generality.ONE_PLACE.search(said) or generality.IN_ONE_NAME.search(said))

    def _is_for_work_at_hand(self) -> bool:
        """Whether something else was ordered or asked in the same message."""
        if generality.is_order(self.said) and _CLAUSE_START.search(self.said):
            return True
        others = (s for s in self.own if s is not self.sentence)
        return any(is_asked(s) or generality.is_order(s.said) for s in others)

    def _read_lasting(self, start: int) -> RuleClause | None:
        for pattern in (_LASTING_CLAUSE, _LASTING_LAST):
            match = pattern.match(self.said, start)
            if match and match.group("verb").lower() in verbs.ALL:
                if self._is_open(start, match) or re.search(
                    r"\b(?:until|till)\b", match.group(), re.IGNORECASE
                ):
                    return None
                is_plan = re.match(
                    r"in the future[\s,]+we (?:should|must|need)",
                    match.group("rest"),
                    re.IGNORECASE,
                )
                return None if is_plan else self._make(Kind.INSTRUCTION, "from-now-on", match, 0.9)
        if (match := _LASTING_NOUN.match(self.said, start)) and not generality.HEDGE.search(
            match.group()
        ):
            return self._make(Kind.INSTRUCTION, "from-now-on", match, 0.9)
        return None

    def _read_forbidden(self, start: int) -> RuleClause | None:
        match = _NOT_EVER.match(self.said, start)
        if match:
            verb = match.group("verb") or match.group("wanted")
            is_order = verb.lower() in verbs.ALL and not self._is_for_one_place(match)
            return self._make(Kind.INSTRUCTION, "not-ever", match, 0.85) if is_order else None
        match = _NOT_AGAIN.match(self.said, start)
        if (
            match
            and match.group("verb").lower() in verbs.ALL
            and not generality.PRONOUN.match(self.said, match.end("verb"))
        ):
            return self._make(Kind.INSTRUCTION, "not-again", match, 0.85)
        return None

    def _read_always(self, start: int) -> RuleClause | None:
        match = _ALWAYS_CLAUSE.match(self.said, start)
        if match is None or match.group("verb").lower() not in verbs.ALL:
            return None
        rest = self.said[match.end("verb") :]
        has_condition = bool(
            re.match(
                r"(?:if|when|whenever|each|every|any|before|after|once|while|on)\b",
                match.group("clause"),
                re.IGNORECASE,
            )
        )
        if self._is_for_one_place(match) or (generality.PRONOUN.match(rest) and not has_condition):
            return None
        if self._is_open(start, match) or re.match(
            r"\s*(?:of|i|we|you|he|she|they)\b", rest, re.IGNORECASE
        ):
            return None
        is_behaviour = match.group("verb").lower() in verbs.BEHAVIOUR
        if is_behaviour and (
            self._is_for_work_at_hand() or (generality.ONE_THING.match(rest) and not has_condition)
        ):
            return None
        name = "always" if match.group("always").lower().startswith(("always", "only")) else "never"
        return self._make(Kind.INSTRUCTION, name, match, 0.8, "clause" if has_condition else "rest")

    def _read_habit(self, start: int) -> RuleClause | None:
        """`We always squash`, `whenever you …, do …`, `migrations must always …`, `run … before every commit`."""
        if (match := _WE_CLAUSE.match(self.said, start)) and self._is_policy(start, match):
            return self._make(Kind.INSTRUCTION, match.group("always").lower(), match, 0.75)
        if (match := _WHENEVER.match(self.said, start)) and match.group(
            "verb"
        ).lower() in verbs.CONDUCT:
            is_order = not self._is_open(start, match) and not generality.ONE_PLACE.search(
                match.group()
            )
            return self._make(Kind.INSTRUCTION, "whenever", match, 0.7) if is_order else None
        if match := _ALL_MUST.match(self.said, start):
            is_general = (
                match.group("verb").lower() in verbs.ALL
                and not set(match.group("subject").lower().split()) & (generality.PEOPLE | {"this", "its", "is", "was", "has", "does"})
                and not self._is_open(start, match) and not self._is_for_one_place(match) and not self._is_for_work_at_hand()
            )  # fmt: skip
            return self._make(Kind.INSTRUCTION, "always", match, 0.75) if is_general else None
        match = _BEFORE_EVERY.match(self.said, start)
        if match and not self._is_open(start, match) and not self._is_for_one_place(match):
            return self._make(Kind.INSTRUCTION, "before-every", match, 0.75)
        return None

    def _is_policy(self, start: int, match: re.Match[str]) -> bool:
        """Whether `we always …` says what is done on principle, not what happens to be so."""
        verb, object_ = match.group("verb").lower(), match.group("object")
        return (
            verb in verbs.CONDUCT - generality.NO_POLICY
            and not generality.ONE_THING.match(object_) and not re.match(rf"\s*(?:{OPAQUE}|into\b|out\b|up against\b|twice\b)", object_)
            and not self._is_for_one_place(match) and not self._is_open(start, match)
            and not re.search(r"\b(?:bug|leak|problem|issue|why|wrong|twice|fix|fails?|breaks?|that's|which)\b", object_, re.IGNORECASE)
        )  # fmt: skip

    def _read_preference(self, start: int) -> RuleClause | None:
        if match := _PREFER.match(self.said, start):
            is_general = not generality.NO_TASTE.match(
                match.group("object")
            ) and not self._is_for_one_place(match)
            is_open = re.search(r"\b(?:if|would be|unless)\b", match.group("object"), re.IGNORECASE)
            return (
                self._make(Kind.PREFERENCE, "prefer", match, 0.85)
                if is_general and not is_open
                else None
            )
        if match := _HATE_WHEN.match(self.said, start):
            is_general = not generality.VAGUE_SUBJECT.match(match.group("object")) or match.group(
                "object"
            ).lower().startswith(("you ", "there "))
            return (
                self._make(Kind.PREFERENCE, "like", match, 0.75)
                if is_general and not self._is_for_one_place(match)
                else None
            )
        if match := _MY_CHOICE.match(self.said, start):
            is_general = not generality.NO_TASTE.match(
                match.group("object")
            ) and not self._is_for_one_place(match)
            return self._make(Kind.PREFERENCE, "my", match, 0.8) if is_general else None
        match = _USE_NOT.fullmatch(self.said) if start == 0 and len(self.own) == 1 else None
        if match and not re.search(
            r"\b(?:the|an?|this|that|these|those|it|them|for|in|here|one|first|second)\b|\d",
            match.group(),
            re.IGNORECASE,
        ):
            return self._make(Kind.PREFERENCE, "use-not", match, 0.6)
        return None

    def _read_lead_fact(self, start: int) -> RuleClause | None:
        """`Remember: …`, `FYI: …`, `TODO: …` with what follows the colon."""
        lead = self.sentence.lead
        if start or not lead:
            return None
        whole = compile_lazily(r"(?P<rest>.+)").match(self.said)
        if whole is None:
            return None
        if re.search(r"\bto-?do$", lead):
            return self._make(Kind.TASK, "todo", whole, 0.75)
        is_aside = re.search(
            r"\b(?:fyi|for your information|for the record|just so you know|heads?[- ]up)$", lead
        )
        is_kept = re.search(
            r"\b(?:remember|fact|keep in mind|bear in mind|don't forget)$", lead
        ) or (re.search(r"\bnote$", lead) and self.own[0] is self.sentence)
        if (
            (is_aside or is_kept)
            and not _MARKER.search(self.said)
            and generality.is_statement(self.said)
        ):
            return self._make(Kind.FACT, "fyi" if is_aside else "remember", whole, 0.75)
        return None

    def _read_fact(self, start: int) -> RuleClause | None:
        if start:
            return None
        if _AT_WORK.search(self.said):
            return None
        if (match := _FYI_FACT.match(self.said)) and generality.is_statement(match.group("rest")):
            return self._make(Kind.FACT, "fyi", match, 0.75)
        if (match := _REMEMBER_FACT.match(self.said)) and generality.is_statement(
            match.group("rest")
        ):
            # `Keep in mind that …` beside an order is meant for that order.
            is_asked_for = match.group("how").lower() in (
                "remember",
                "don't forget",
                "do not forget",
            )
            if is_asked_for or not self._is_for_work_at_hand():
                return self._make(Kind.FACT, "remember", match, 0.85)
        return None

    def _read_task(self, start: int) -> RuleClause | None:
        if (match := _NEXT_TIME.match(self.said, start)) and match.group(
            "verb"
        ).lower() in verbs.ALL:
            return self._make(Kind.INSTRUCTION, "next-time", match, 0.7)
        if start == 0 and (match := _TODO.match(self.said)):
            return self._make(Kind.TASK, "todo", match, 0.75)
        if match := _REMIND.match(self.said, start):
            return self._make(Kind.TASK, "remind", match, 0.8)
        for pattern in (_LATER_FIRST, _LATER_LAST):
            match = pattern.match(self.said, start)
            if (
                match
                and match.group("verb").lower() in verbs.ALL - verbs.READING
                and not generality.PRONOUN.match(self.said, match.end("verb"))
                and not generality.HEDGE.search(match.group())
            ):
                return self._make(Kind.TASK, "later", match, 0.6)
        return None


def may_hold_rule(prompt: str) -> bool:
    """Whether a prompt could hold an instruction or a preference; quick, and never wrongly False."""
    return _HINT.search(prompt) is not None


_HINT = compile_lazily(
    r"from |future|forward|again|any ?more|ever|remember|mind|always|time|prefer|when|my|use|hence|starting|rule|circumstances|account|before|after",
    re.IGNORECASE,
)
