"""What the next exchange grants to be wrong in what a turn told: by an objection of the user's, or by itself. Pure.

Both must be said outright: `you're right` alone may agree to a wish, so the user's own words must deny something; an
agent that takes something back must name its claim as its own (`I oversold it`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memd.distill import sentences
from memd.distill.dialogue.findings import is_refuted
from memd.distill.dialogue.offers import strip_markup
from memd.distill.dialogue.wording import clip_line
from memd.distill.episodes import Exchange
from memd.patterns import compile_lazily

_PROMPT_CHARACTERS, _TEXT_CHARACTERS = 600, 3_000
_QUOTE_CHARACTERS = 240
_WORDS_MIN = 4
_GRANTED_SENTENCES = 3
_SHARED_MIN = 0.5
"""Share of a claim's words that what was granted must have, to deny it."""
_GRANTS = compile_lazily(
    r"^\W*(?:(?:ah|oh|yes|hm+|sorry|good (?:catch|point|observation)|great (?:catch|point))\b[\s,.!—–-]*)*"  # dashes as people type them
    r"(?:you(?:'re|’re| are) (?:absolutely |completely |totally |quite )?(?:right|correct)\b(?! (?:to|in) |,? but\b|[^.!]{0,60}\b(?:approach|idea|could|should))"
    r"|i (?:was|stand) (?:wrong|mistaken|corrected)|my (?:mistake|bad)\b|i apologi[sz]e\b)",
    re.IGNORECASE,
)
_TAKES_BACK = compile_lazily(
    r"\bi (?:\w+ )?(?:oversold|overstated|misread|misspoke|misstated|misunderstood|misdiagnosed)\b|\bi was (?:wrong|mistaken|incorrect|imprecise)\b"
    r"|\bi stand corrected\b|\bmy (?:earlier|previous|first|last) (?:claim|statement|answer|analysis|conclusion|diagnosis|explanation) (?:was|is) (?:wrong|incorrect|mistaken|not)"
    r"|\bwhat i (?:said|wrote|claimed) (?:before|earlier|above)? ?(?:was|is) (?:wrong|incorrect|not)",
    re.IGNORECASE,
)
_MAYBE = compile_lazily(r"\b(?:if|unless|in case|may|might|maybe|perhaps)\b", re.IGNORECASE)
_OBJECTS = compile_lazily(
    r"\b\w+n['’]t\b|\b(?:no|not|never|none|wrong|incorrect|false|cannot|without|but|nope|hm+|still|actually|already)\b|\bright\s*\?"
    r"|\b(?:are you sure|i doubt|i wonder|i just (?:checked|looked|tested|tried))\b",
    re.IGNORECASE,
)
"""What the user's words must have: without them he may only have wished for something more."""
_NEXT_STEP = compile_lazily(
    r"(?:^|,? )(?:so |and |now )?(?:let me|i'?ll|i will)\b.*", re.IGNORECASE
)
"""What the agent is about to do."""

_SETS_NORM = compile_lazily(
    r"(?!(?:i|we|you|let|that|this|it|they|if|maybe|there)\b)(?=(?:\W*[\w-]+){5})[^?]{3,120}?\b(?:should|must)\b(?! (?:work|pass|now|have been|probably|be (?:fine|ok|fixed|done|enough))\b)[^?]+$",
    re.IGNORECASE,
)
"""`Only the index should be committed`, with its subject."""
_IS_NO_PROSE = re.compile(r"\s*(?:```|\*\*|[|#>]|[-*+] |\d+[.)] )")

_IS_CODE = re.compile(r"\s*(?:```|//|[+#=>|]|-{2,})")


@dataclass(frozen=True, slots=True)
class Correction:
    """What was said against a turn and granted. `objection` is empty if the agent took it back by itself."""

    objection: str
    granted: str

    def tell(self) -> str:
        """As a line of a body."""
        granted = f"“{clip_line(self.granted, _QUOTE_CHARACTERS)}”"
        if not self.objection:
            return f"Taken back next: {granted}"
        return f"Objected to next: “{clip_line(self.objection, _QUOTE_CHARACTERS)}” – granted: {granted}"

    def refutes(self, claim: str) -> bool:
        """Whether what was granted says of a claim that it is not so, in the claim's own words."""
        return is_refuted(claim, self.granted, _SHARED_MIN)


def find_correction(after: Sequence[Exchange]) -> Correction | None:
    """What the exchange after a turn, the first of these, grants to be wrong in it; None if nothing."""
    if not after:
        return None
    later = after[0]
    said = [text for text in (*later.texts, later.answer.text if later.answer else "") if text]
    objection = next(
        filter(_OBJECTS.search, _split_own_words(later.prompt[:_PROMPT_CHARACTERS])), ""
    )
    for text in said:
        granted = _read_sentences(text, 0) if objection and _GRANTS.match(text) else ""
        if len(_GRANTS.sub("", granted).split()) >= _WORDS_MIN:
            return Correction(strip_markup(objection), granted)
    # Later in its turn it speaks of that turn's own steps.
    for place, sentence in enumerate(sentences.split_sentences(later.first[:_TEXT_CHARACTERS])):
        if _TAKES_BACK.search(sentence) and not _MAYBE.search(sentence):
            return Correction("", _read_sentences(later.first, place, through_colons=True))
    return None


def find_granted_norm(own: Exchange) -> tuple[str, str]:
    """(what the user objected to, how it shall be then in the agent's words) of one exchange; empty if nothing."""
    correction = find_correction([own])
    if correction is None or not correction.objection:
        return "", ""
    said = sentences.split_sentences(_GRANTS.sub("", correction.granted))
    norms = (one.strip(" -–—") for one in said if _SETS_NORM.match(one.strip(" -–—")))
    return correction.objection, next(norms, "")


def _split_own_words(prompt: str) -> list[str]:
    """The sentences of a prompt, without lines of code and of a diff."""
    own = sentences.extract_own_words(prompt) or prompt
    return [one for one in sentences.split_sentences(own) if not _IS_CODE.match(one)]


def _read_sentences(text: str, place: int, *, through_colons: bool = False) -> str:
    """A few sentences from one on, without markup, up to a code block or a list, or what leads to one."""
    found: list[str] = []
    for sentence in sentences.split_sentences(text[:_TEXT_CHARACTERS])[place:][:_GRANTED_SENTENCES]:
        if found and (
            _IS_NO_PROSE.match(sentence) or (sentence.endswith(":") and not through_colons)
        ):
            break
        found.append(strip_markup(_NEXT_STEP.sub("", sentence)))
    return " ".join(found).strip()
