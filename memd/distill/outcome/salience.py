"""How much each word tells what a turn is about. Pure.

A word tells much if it stands in what was asked, names a file or an identifier that was changed, or comes again and
again; it tells little if every report of work uses it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memd.caches import cached
from memd.distill.outcome.statements import Statement
from memd.distill.sentences import extract_own_words
from memd.patterns import compile_lazily
from memd.text import content_stems, stem, terms, unique, words

_GENERIC = frozenset(
    stem(word)
    for word in words("""
    add all already also analysis answer anything application apply approach area basis behavior behaviour better block branch break bug build
    call case cause change changes check clean clear close code come command commit compile complete comprehensive concern consider
    context correct correctly create current currently cover detail different direct document do done easy edit end ensure error
    everything exact example exist explain explanation extra fail failure feature few file find fine first fix fixed follow following
    found full function get give go good great green handle happen have help here idea implement implementation important improve
    include input instead issue item its key kind know land last leave let level line linting lint list local logic look main make
    manual many matter mean merge message method minor miss more move much name need new next note nothing now number ok old one
    only open option order original output overview pass perfect piece place plan point possible previous problem proceed process
    project prompt proper properly provide push question quick read ready real reason recent refactor related relevant remain remove
    rename repo report request require resolve result return review right run same say second see set several should show simple
    single small solution something start state step still structure success successfully suggest suite summary support sure system
    take task team tell test tests thing think time today total try turn type understand unit update usage use user value various
    verify version want way well what work working write wrong yes""")
)  # fmt: skip
"""What any report of work says, whatever it is about."""
GENERIC_SHARE = 0.15
_NAME = compile_lazily(
    r"`([^`\n]{2,60})`|[\"“]([^\"“”\n]{3,40})[\"”]"  # quoted
    r"|(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.[A-Za-z]{1,5})(?![\w(/-])"  # a file
    r"|(?<![\w-])(--[a-z][\w-]+)"  # an option
    r"|(?<![\w-])([a-z]+(?:-[a-z0-9]+){2,})(?![\w-])|\b(\w+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b"
)
_PATH_PARTS_MAX = 2
_NAMED_CACHED = 512
"""Texts of which the names are kept: those of a prompt are asked for several times."""
_ASKED_CHARACTERS = 4_000
_PLENTY = 30
"""Words of a prompt from which it is pasted rather than typed, and each tells less."""
_EDITED_CHARACTERS = 4_000
_FILES_READ = 8
_KEYS_COUNTED = 4
_KNOWN_MIN = 1.2
_CONTENT_MIN = 2


@dataclass(frozen=True, slots=True)
class Salience:
    """Weights of stems: of all words of a turn, and of those that it was asked about."""

    weights: Mapping[str, float]
    keys: Mapping[str, float]
    """The stems of what was asked."""
    focus: str
    """What was asked, in own words; of `yes`, what had been asked before."""

    is_recalled: bool = False
    """It is an earlier prompt that the focus is taken from."""
    told: str = ""
    """What the answer says, and the names of the files."""

    def measure(self, text: str) -> float:
        """The sum of the weights of the different words of a text."""
        return sum(self.weights.get(one, 0.0) for one in set(content_stems(text)))

    def is_known(self, word: str) -> bool:
        """Whether a word of what was asked comes again in the answer or the files."""
        return any(self.keys.get(one, 0.0) >= _KNOWN_MIN for one in terms(word))

    def is_known_or_generic(self, word: str) -> bool:
        """Whether a word comes again, or says nothing by itself: the last one of `checkout error`."""
        return self.is_known(word) or all(map(is_generic, content_stems(word)))

    def count_told(self, phrase: str) -> int:
        """How often the answer and the files' names have these words side by side."""
        pattern = rf"(?<!\w){re.escape(phrase.rstrip('s'))}"
        return len(re.findall(pattern, self.told, re.IGNORECASE))

    def cover(self, text: str) -> float:
        """How much of what was asked a text names: 1 if it has as much as the four weightiest words."""
        most = sum(sorted(self.keys.values(), reverse=True)[:_KEYS_COUNTED])
        found = sum(self.keys.get(one, 0.0) for one in set(content_stems(text)))
        return min(found / most, 1.0) if most else 1.0


def is_generic(word_stem: str) -> bool:
    """Whether every report uses this word."""
    return word_stem in _GENERIC or word_stem.isdigit()


def tells_nothing(text: str) -> bool:
    """Whether a text has no words but generic ones."""
    return all(map(is_generic, content_stems(text)))


@cached(_NAMED_CACHED)
def find_names(text: str) -> tuple[str, ...]:
    """The identifiers, files and quoted code in a text, in order, once each."""
    found = (next(filter(None, groups)).strip(" .,:;!?") for groups in _NAME.findall(text))
    short = (
        "/".join(name.split("/")[-_PATH_PARTS_MAX:]) if name.count("/") > 1 else name
        for name in found
    )
    return unique(name for name in short if any(c.isalpha() for c in name))


def weigh_words(
    asked: str,
    earlier: Sequence[str],
    statements: Sequence[Statement],
    files: Sequence[str],
    edited: Iterable[str] = (),
) -> Salience:
    """Weigh the words of a turn by what was asked, now and earlier, what was answered, and what was changed."""
    own = (extract_own_words(asked) or asked)[:_ASKED_CHARACTERS]
    said = Counter(one for line in statements for one in set(content_stems(line.text)))
    weights: defaultdict[str, float] = defaultdict(float)
    _add_asked(weights, own, 1.0)
    for share, text in zip((0.6, 0.3), earlier, strict=False):
        _add_asked(weights, (extract_own_words(text) or text)[:_ASKED_CHARACTERS], share)
    in_files = {
        t
        for path in files[:_FILES_READ]
        for word in words(path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        for t in terms(word)
    }
    for one in in_files:
        weights[one] += 0.9 / min(len(files), 3)
    changed = find_names(" ".join(edited)[:_EDITED_CHARACTERS])
    for one in {t for name in changed for word in words(name) for t in terms(word)}:
        weights[one] += 0.4
    for one, count in said.items():
        weights[one] += 0.25 * min(count - 1, 3)
    for one in weights:
        if is_generic(one):
            weights[one] *= GENERIC_SHARE
    focus = next((text for text in (own, *earlier) if _has_content(text)), own)[:_ASKED_CHARACTERS]
    is_recalled = focus != own[:_ASKED_CHARACTERS]
    told = "\n".join((*(line.text for line in statements), *files))
    return Salience(weights, _weigh_keys(focus, said, in_files), focus, is_recalled, told)


def _has_content(text: str) -> bool:
    found = {one for one in content_stems(text) if not is_generic(one)}
    return len(found) >= _CONTENT_MIN or bool(find_names(text))


def _weigh_keys(
    focus: str, said: Mapping[str, int], in_files: AbstractSet[str]
) -> dict[str, float]:
    """The stems of what was asked; of a pasted text only those that come again."""
    asked = Counter(one for one in content_stems(focus) if not is_generic(one))
    named = {t for name in find_names(focus) for word in words(name) for t in terms(word)}
    is_pasted = len(asked) > _PLENTY
    keys = {}
    for one, count in asked.items():
        is_known = one in said or one in in_files
        if is_known or not is_pasted:
            keys[one] = 0.5 + 0.7 * is_known + 0.4 * (one in named) + 0.2 * min(count - 1, 3)
            keys[one] += 0.15 * min(said.get(one, 0), 4)
    return keys


def _add_asked(weights: defaultdict[str, float], text: str, share: float) -> None:
    stems = set(content_stems(text))
    each = share * min(1.0, _PLENTY / max(len(stems), 1))
    for one in stems:
        weights[one] += each
    for one in {t for name in find_names(text) for word in words(name) for t in terms(word)}:
        weights[one] += 0.6 * share
