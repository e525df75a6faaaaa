"""Sentences that say that something is still broken. Pure.

The agent describes in its closing message what was wrong before, so only what it says of the present counts,
and what it says of the past only if nothing after it says that it works. The user answers to a claim, so a
plain `doesn't work` is enough. Conditions, yes-or-no questions and other people's words deny nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.distill import text as sentences
from memd.distill.episodes import Story, Utterance
from memd.patterns import compile_lazily
from memd.text import content_stems, is_stop_word, stem, words

_FAILING = (
    r"(?:fail(?:s|ing|ure|ures)?|broken|breaks?|breaking|crash(?:es|ing)?|err(?:or|ors|oring)|red|throw(?:s|ing)?|rais(?:es|ing)|hang(?:s|ing)?"
    r"|flaky|unresolved|unfixed|reproducible|reproduces|persists?|times? out|wrong|incorrect|buggy|stuck|segfault\w*|not \w+|doesn['’]?t|does not|isn['’]?t|won['’]?t|can['’]?t|cannot|has(?:n['’]t| not)|have(?:n['’]t| not)"
    r"|needs? (?:fixing|to be fixed)|returns? (?:the (?:wrong|same)|\d)|giv(?:es|ing) (?:me )?(?:the|an|that)|(?:get|got|see|getting|seeing|having|shows?|showing|hitting|hit) (?:the|an?|that|this|same|those|these|exactly|it|\w*error|\d{3}))"
)
_FIXED = r"(?:fixed|resolved|solved|mended|repaired|cured|corrected)"
_NOT = r"(?:(?:is|are|was|were|has|have|had|does|do|did|wo|ca)n['’]?t|not|never|cannot)"
_AGENT_SAYS = compile_lazily(
    rf"\bstill\s+(?:(?:only|also|sometimes|occasionally|intermittently|consistently|just|the|very|currently)\s+)*{_FAILING}\b"
    rf"|\b{_NOT}\s+(?:(?:yet|been|be|really|fully|completely|actually|entirely|quite|properly|being)\s+)*{_FIXED}\b|\bnot (?:a|the) (?:real |proper |full )?fix\b"
    rf"|\b(?:un(?:fixed|resolved))\b|\b(?:only|just)?\s*(?:partially|partly|half|half-way)\s+(?:{_FIXED}|works?|working|done)\b"
    r"|\bkeeps? (?:failing|crashing|breaking|hanging)\b|\b(?:fails|failing|crashes|breaks) (?:again|intermittently|sometimes|occasionally)\b|\b(?:sometimes|intermittently|occasionally) (?:fails|crashes)\b"
    rf"|\b(?:not (?:sure|certain|convinced)|unsure|doubt)\b.{{0,40}}\b(?:{_FIXED}|fixes|fix|works)\b"
    r"|\b(?:test|tests|failure|failures|error|errors|check|problem|issue|bug)\s+remains?\b|\bremaining (?:failures?|errors?)\b|\bpersists?\b"
    r"|\bgave up\b|\bgiving up\b|\bno luck\b|\bwithout success\b|\bthe same (?:error|failure|problem|issue)\b(?=\s*(?:$|[.,;!]|again|remains|appears|occurs|comes|as before))",
    re.IGNORECASE,
)
_AGENT_SAID = compile_lazily(
    rf"\bstill\s+(?:failed|crashed|broke|threw|raised|hung|got|gave)\b|\b(?:did(?:n['’]?t| not))\s+(?:\w+\s+)?(?:help|fix|solve|resolve)\b"
    r"|\b(?:it|that|this|change|fix|attempt|approach|patch|workaround|idea)\s+did(?:n['’]?t| not) work\b"
    rf"|\b(?:could(?:n['’]?t| not)|was(?:n['’]?t| not) able to|unable to|failed to|did(?:n['’]?t| not) manage to|cannot|can['’]?t)\s+(?:\w+\s+){{0,2}}?(?:fix|resolve|solve|mend|{_FIXED})\b",
    re.IGNORECASE,
)
_USER_SAYS = compile_lazily(
    rf"\bstill\s+(?:\w+\s+)?(?:{_FAILING}|failed|crashed|broke|hung|threw|there|happen(?:s|ing)|occur(?:s|ring)?|present|open|bad|same|nothing|no)\b"
    rf"|\b(?:do|does|did|is|are|was|has|have|wo|ca|could)(?:n['’]?t| not)\s+(?:(?!want|need|have|know|think|to\b)\w+\s+){{0,2}}?(?:work(?:s|ed|ing)?|help(?:ed)?|fix(?:ed)?|pass(?:es|ed|ing)?|solved?|resolved?|change anything|compile|start|do anything)\b"
    rf"|\b(?:not|never)\s+(?:\w+\s+){{0,2}}?(?:working|passing|{_FIXED})\b|\bnot (?:a|the) fix\b|\bdoesnt work\b|\bnot work(?:ing)?\b"
    r"|\b(?:the |that |exact(?:ly)? (?:the )?)?same (?:\w+ )?(?:error|problem|issue|failure|bug|crash|thing|result|stack ?trace|traceback|exception|message|behaviou?r|story)\b"
    r"|\bno (?:change|difference|luck|effect|improvement|dice)\b|\b(?:fails?|failing|failed|broken?|crash(?:es|ed|ing)?|breaks|errors?|happen(?:s|ed)|broke) again\b"
    r"|\bkeeps? (?:failing|crashing|breaking|happening|hanging|throwing|getting)\b|\bkeep (?:seeing|getting)\b|\b(?:is|are|came|comes|['’]s) back(?: again)?\s*(?:[.!,]|$)|\bpersists?\b|\bregress(?:ed|ion)\b|\breopen\b"
    rf"|\byou (?:did(?:n['’]?t| not)|have(?:n['’]?t| not))(?: \w+)? (?:fix|solve|address)\w*|\bdid nothing\b|\b(?:was|is)(?:n['’]?t| not) it\b|\bonly (?:partially|partly|half)\b|\bpartially {_FIXED}\b|\bmade (?:it|things) worse\b"
    r"|\b(?:it|this|that|test|tests|build)['’]?s? (?:is |are )?(?:fails|failing|broken|red)\b(?! (?:because|when|if))",
    re.IGNORECASE,
)
_PLAIN_NO = compile_lazily(
    r"^\W*(?:nope|nah|no+ (?:it|that) (?:is|does|did)n['’]?t|not really|not quite)\b", re.IGNORECASE
)
_PLAIN_NO_WORDS = 4
_CLAUSE_END = compile_lazily(
    r"[;:]\s|,\s+|\s[–—-]{1,2}\s|\s+(?=(?:but|however|though|although|yet|except|whereas|while|because|since|so)\s)"
)  # dashes as people type them
_CONDITION = compile_lazily(
    r"\b(?:if|whenever|in case|should (?:it|that|this|you)|unless|whether|until|would|might|could|may|otherwise|used to|before (?:this|the|that|my)|previously|earlier|originally|initially"
    r"|let me know|without|suppose|imagine|lest|any|no|nothing|none|nobody|no longer|not only|not just|never|used to|says?|said|claims?|complains?)\b",
    re.IGNORECASE,
)
_WHEN = compile_lazily(r"^\W*when\b", re.IGNORECASE)
_EXPLAINS_WHY = compile_lazily(
    r"^\W*(?:why|how come|what|where|and why|but why|so why)\b", re.IGNORECASE
)
_ASKS = compile_lazily(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|can|could|should|would|will) (?!not\b)",
    re.IGNORECASE,
)
_OTHER_THING = compile_lazily(
    r"\b(?:unrelated|pre-?existing|separate(?:ly)?|not (?:related|caused)|out of scope|before my|known)\b",
    re.IGNORECASE,
)
_WORKS = compile_lazily(
    r"\bnow\b.{0,60}\b(?:pass(?:es|ing|ed)?|works?|working|green|fixed|succeeds?|clean)\b|\b(?:passes|pass|works?|succeeds?|green|fixed|clean)\b.{0,15}\bnow\b"
    r"|\b(?:all|every)\b.{0,40}\bpass(?:es|ed|ing)?\b|\bno longer\b|^\W*(?:fixed|resolved|solved)\b|\b(?:is|are) (?:fixed|resolved|solved|green)\b",
    re.IGNORECASE,
)  # fmt: skip
_ANSWERED_IT = compile_lazily(
    r"(?:^|\s)(?:it|that|this|they|which|nothing|everything|still|i|we|you|you['’]ve|there)\W*$",
    re.IGNORECASE,
)
GENERIC_STEMS = frozenset(
    stem(word)
    for word in words("""test tests fail failing failure error errors check build bug issue problem fix fixed still same run pass work broken thing
    crash see get happen again now code change yet time locally output message exception trace one two three some few other of the same exact
    suite result unfortunately however ok hmm well sorry no nope me my even also currently here actually tried just fixing""")
)  # fmt: skip
_CLAIMS_FIX = compile_lazily(
    r"^\W*(?:(?:i|we)(?:['’]ve| have)? |it['’]?s |it is |this |that |all |successfully |now )*"
    r"(?:fixed|fixes|resolved|resolves|solved|mended|repaired)\b"
    r"|\b(?:is|are|was|were|been|got) (?:now |finally |all )?(?:fixed|resolved|solved|mended)\b",
    re.IGNORECASE,
)
_SORTS = {
    sort: compile_lazily(pattern, re.IGNORECASE)
    for sort, pattern in {
        "test": r"tests?\b|\bspecs?\b|rspec|jest|mocha|phpunit",
        "build": r"\bbuild|compil|\bwebpack\b|\bmake$",
        "lint": r"lint|\bruff\b|flake8|clippy|rubocop|prettier|\bformatt",
        "types": r"\bmypy\b|pyright|\btsc\b|\btype(?:s|check|-check)?\b",
    }.items()
}
_USER_CHARACTERS = 2_000


def name_sorts(text: str) -> frozenset[str]:
    """The sorts of checks that a sentence or a command names: `npm run lint` is of the sort `lint`."""
    return frozenset(sort for sort, pattern in _SORTS.items() if pattern.search(text))


def claims_fix(title: str) -> bool:
    """Whether a title says that something is fixed, which takes proof."""
    return _CLAIMS_FIX.search(title) is not None


@dataclass(frozen=True, slots=True)
class Denial:
    """A sentence that says that something is not fixed. `at` is UTC milliseconds."""

    event_id: int
    at: int
    speaker: str
    quote: str
    subject: frozenset[str]
    """Stems of what it says so about; empty: whatever was spoken of last."""
    sorts: frozenset[str] = frozenset()
    """The sorts of checks that it names."""

    def concerns(self, about: frozenset[str], command: str = "") -> bool:
        """Whether it can be about something with these stems, which this command checked."""
        checked = name_sorts(command)
        if self.sorts and checked and not self.sorts & checked:
            return False
        return not self.subject or bool(self.subject & about)


def find_denials(said: Utterance) -> list[Denial]:
    """The sentences of this speaker that say that something is still broken."""
    is_user = said.speaker == "User"
    text = sentences.extract_own_words(said.text)
    split = sentences.split_sentences(text[:_USER_CHARACTERS] if is_user else text)
    found = []
    for number, sentence in enumerate(split):
        if (subject := _find_denied(sentence, split[number + 1 :], is_user=is_user)) is not None:
            quote = sentences.clip_quote(sentence)
            found.append(
                Denial(said.event_id, said.at, said.speaker, quote, subject, name_sorts(sentence))
            )
    return found


def find_story_denials(story: Story) -> list[Denial]:
    """All denials of an episode, of the user and the agent, in order of time."""
    found = [one for said in (*story.prompts, *story.answers) for one in find_denials(said)]
    return sorted(found, key=lambda one: (one.at, one.event_id))


def _find_denied(
    sentence: str, following: Sequence[str], *, is_user: bool
) -> frozenset[str] | None:
    """The subject of a denial; None if the sentence denies nothing."""
    bare = sentences.blank_quotes(sentence)
    if _asks_whether(bare):
        return None
    if is_user and _PLAIN_NO.match(bare) and len(words(bare)) <= _PLAIN_NO_WORDS:
        return frozenset()
    if _OTHER_THING.search(bare):
        return None
    for clause in _split_clauses(bare):
        if is_user:
            match = _USER_SAYS.search(clause)
        else:
            match = _AGENT_SAYS.search(clause)
            if match is None and (match := _AGENT_SAID.search(clause)):
                rest = [bare[bare.find(clause) + len(clause) :], *following]
                match = None if any(_WORKS.search(one) for one in rest) else match
        if match and not _is_conditional(clause, match, bare):
            return _read_subject(clause[: match.start()])
    return None


def _asks_whether(sentence: str) -> bool:
    """Whether this is a question that yes or no answers; `why is it still red?` takes for granted that it is."""
    if _EXPLAINS_WHY.match(sentence):
        return False
    return sentence.rstrip("\"')”» ").endswith("?") or _ASKS.match(sentence) is not None


def _split_clauses(sentence: str) -> Iterator[str]:
    start = 0
    for match in _CLAUSE_END.finditer(sentence):
        yield sentence[start : match.start()]
        start = match.end()
    yield sentence[start:]


def _is_conditional(clause: str, match: re.Match[str], sentence: str) -> bool:
    before = sentence[: sentence.find(clause) + match.start()]
    within = clause[: match.start()]
    if _CONDITION.search(within) or _WHEN.match(within):
        return True
    # `If you run it again, it still fails`: the condition is a clause of its own.
    return re.match(r"^\W*(?:if|unless|in case|should)\b", before, re.IGNORECASE) is not None


def _read_subject(text: str) -> frozenset[str]:
    if not text.strip() or _ANSWERED_IT.search(text):
        return frozenset()
    telling = " ".join(word for word in words(text) if not is_stop_word(word.lower()))
    return frozenset(content_stems(telling)) - GENERIC_STEMS
