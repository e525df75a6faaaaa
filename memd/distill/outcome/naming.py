"""The title of a turn, from all that may name it. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from memd.distill import sentences
from memd.distill.edits import FileEdit
from memd.distill.episodes import EpisodeContext, Story
from memd.distill.outcome import doing, titles
from memd.distill.outcome.forms import points_back
from memd.distill.outcome.requests import Preceding, find_request, is_deictic
from memd.distill.outcome.salience import Salience, is_generic, tells_nothing, weigh_words
from memd.distill.outcome.statements import Statement, read_statements, strip_markup
from memd.distill.outcome.titles import Candidate
from memd.distill.proof.disputes import claims_fix
from memd.distill.settings import are_about, read_changes
from memd.distill.speech import verbs
from memd.machine_text import read_plan, read_plan_text
from memd.models import name_setting
from memd.patterns import compile_lazily
from memd.text import content_stems, one_line, unique

_NAMES_MAX, _VALUES_MAX = 3, 2
_SETTING_NAME_MIN, _SETTING_NAME_MAX = 3, 40
"""Characters; `x` tells nothing."""
_ASKED_SENTENCES = 6
_WORDS_MIN = 4
_EDIT_CHARACTERS = 4_000
_DEFINITION = compile_lazily(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|pub|abstract|final)\s+)*(?:func|def|function|class|fn|interface|struct|trait|enum|type)\s+(?:\([^)\n]*\)\s*)?([A-Za-z_]\w{2,})",
    re.MULTILINE,
)
_SUBJECT_MAX = 60
_REQUEST_MAX, _SHORT_REQUEST = 60, 40
"""Characters of a request that stands before its outcome, and of one that may cut it short."""
_SAID_SHARE, _SAID_MIN = 0.6, 2
"""Of a request's stems, and how many of them, from which the outcome says what was asked."""
_CAN_WE = compile_lazily(r"^(?:can|could) (?:we|i)(?: also| please)?\s+", re.IGNORECASE)
_FORBIDS = compile_lazily(r"^(?:do not|don['’]?t|never|no)\b", re.IGNORECASE)
_ANY = compile_lazily(r"^(?:any|some|no)\b", re.IGNORECASE)
"""`Any idea why …` has no verb of its own: it asks."""
_COVERED_MIN = 0.5
_SAME_SHARE = 0.8
_COMMITTED_SHARE = 0.4
"""Of the stems of a plan's heading, from which a commit tells of the plan."""
_TELL_OF_PLAN = frozenset(("commit", "pull request", "sentence", "heading"))
_ABOUT_FILE = compile_lazily(
    r"^`?[\w./-]+\.[a-z]{1,5}\b[^ ]*\s*(?:\([^)]*\)\s*)?(?:[:–—-]|$)", re.IGNORECASE
)  # dashes as people type them
"""`cart.py — rounds the prices`: one piece of the work."""
_STEMS_MIN = 3
_OWN_SHARE = 0.75
"""Of the telling words of what the client calls a conversation, those that its last turn has, too."""
UNCHECKED, REFUTED = "Said, not checked: ", "Said, then refuted: "


def name_turn(
    story: Story,
    context: EpisodeContext,
    before: Preceding,
    *,
    is_proven: bool,
    told_elsewhere: Iterable[str] = (),
    is_refuted: Callable[[str], bool] | None = None,
) -> str:
    """The outcome of a turn on one line of at most 100 characters; empty if nothing tells it.

    `is_proven`: a check that failed passed in the end. Otherwise no title says that something is fixed.
    `told_elsewhere`: sentences that are memories of their own. `is_refuted`: whether a sentence was said to be wrong later.
    """
    prompts = [said.text for said in story.prompts]
    plan = next(filter(None, map(read_plan, prompts)), None)
    asked = find_request(prompts, before)
    told = find_outcome_text(story)
    for root in context.roots:
        told = told.replace(root.rstrip("/") + "/", "") if root.strip("/") else told
    statements = read_statements(told)
    edits = (f"{edit.old}\n{edit.new}" for edit in story.edits)
    asked_before = (before.prompt, before.answer[-1500:])
    salience = weigh_words(asked, asked_before, statements, story.edited, edits)
    found = list(_list_candidates(story, asked, statements))
    elsewhere = [frozenset(content_stems(text)) for text in told_elsewhere]
    found = [one for one in found if not _is_told(one.text, elsewhere)] or found
    if not is_proven:
        found = [one for one in found if not claims_fix(one.text)] or found
    if plan:
        return _name_plan(plan.subject, found, salience, story)
    is_work = doing.does_work(story)
    found = [one for one in found if is_work or one.origin != "heads"] or found
    if is_work and not story.answers:
        # What was said last in work that was broken off is its next step, no outcome.
        found = [one for one in found if one.origin not in titles.TOLD] or found
    best = titles.choose_best(found, salience, is_work=is_work)
    if best is None:
        return _name_edits(story) or _fall_back(story)
    is_wrong = bool(is_refuted and best.origin in titles.TOLD and is_refuted(best.text))
    if is_wrong or (claims_fix(best.text) and not is_proven):
        return _mark(REFUTED if is_wrong else UNCHECKED, best.text)
    if whole := _tell_request(best, found, salience, statements, story):
        return whole
    return _tell_best(best, found, salience, story, is_work=is_work)


def _tell_best(
    best: Candidate,
    candidates: Sequence[Candidate],
    salience: Salience,
    story: Story,
    *,
    is_work: bool,
) -> str:
    """The best statement; after the question that it answers, or after what it is about if it does not say so itself."""
    is_named = best.names_itself or salience.cover(titles.cut_title(best.text)) >= _COVERED_MIN
    is_named = is_named and not points_back(best.text)
    request = "" if best.names_itself else _find_request(candidates, salience, is_work=is_work)
    is_answer = not is_work and sentences.is_question(request)
    request = request.rstrip("?")
    if request and (is_answer or not is_named):
        title = _tell_answer(request, [best] if is_work else candidates, salience)
        # Only the answer to a question may be cut; after an order the outcome is to stand whole.
        if is_answer or len(request) < _SHORT_REQUEST or "…" not in title:
            return title
    files = _name_files(story)
    topic = "" if is_named else titles.find_topic(salience, best.text, files)
    title = titles.finish_title(best.text, topic)
    if len(title.split()) < _WORDS_MIN:
        return _lengthen(title, (titles.find_topic(salience, "", files), salience.focus))
    return title


def _find_request(candidates: Sequence[Candidate], salience: Salience, *, is_work: bool) -> str:
    """What was asked, if one short sentence says most of it: an order or a question, or any if nothing was done; maybe empty.

    Of a question it ends with the question mark.
    """
    asked = [one for one in candidates if one.origin == "asked" and not one.leads]
    asked = [one for one in asked if not _FORBIDS.match(one.text)]
    wish = next((one for one in asked if _is_wish(one.text)), None)
    if wish is None and not is_work:
        wish = titles.choose_best(asked, salience)
    shown = titles.cut_title(wish.text.rstrip("?!. "), _REQUEST_MAX) if wish else ""
    if wish is None or "…" in shown or salience.cover(shown) < _COVERED_MIN:
        return ""
    return titles.finish_title(shown) + "?" * wish.text.endswith("?")


def _tell_answer(request: str, candidates: Sequence[Candidate], salience: Salience) -> str:
    """The request, then the statement that tells most in what is left of the line; alone if that has the request's words."""
    room = titles.TITLE_CHARACTERS - len(request) - 2
    told = (one for one in candidates if one.origin != "asked")
    best = titles.choose_best(told, salience, room=room)
    if best is None:
        return request
    asked = set(content_stems(request))
    shared = len(asked & set(content_stems(titles.cut_title(best.text))))
    is_said = shared >= max(_SAID_MIN, _SAID_SHARE * len(asked)) and not points_back(best.text)
    is_said = is_said and best.origin != "heading"
    return titles.finish_title(best.text, "" if is_said else request)


def _mark(label: str, text: str) -> str:
    """A statement as a title that says how far it holds."""
    cut = titles.cut_title(text, titles.TITLE_CHARACTERS - len(label))
    return one_line(label + cut.rstrip("."), titles.TITLE_CHARACTERS)


def _name_plan(
    subject: str, candidates: Sequence[Candidate], salience: Salience, story: Story
) -> str:
    """The plan, and what came of it: by the commit, by a whole statement that fits, or by the files."""
    pieces = [one for one in candidates if _ABOUT_FILE.match(one.text)]
    telling = [one for one in candidates if one.origin in _TELL_OF_PLAN and one not in pieces]
    telling += pieces if len(pieces) == 1 else []
    telling = [one for one in telling if one.names_itself or titles.says_something(one.text)]
    best = titles.choose_best(telling, salience, is_work=True)
    if best is None or claims_fix(best.text):
        return _say_what_was_edited(subject, story)
    shown = titles.cut_title(best.text)
    stems = set(content_stems(subject))
    share = len(stems & set(content_stems(shown))) / (len(stems) or 1)
    if share >= (_COMMITTED_SHARE if best.names_itself else _SAME_SHARE):
        return titles.finish_title(best.text)
    title = titles.finish_title(best.text, titles.cut_title(subject, _SUBJECT_MAX))
    is_whole = title.lower().endswith(best.text.rstrip("?!. ").lower()) and "…" not in title
    is_outcome = share > 0 or best.names_itself
    return title if is_whole and is_outcome else _say_what_was_edited(subject, story)


def _say_what_was_edited(asked: str, story: Story) -> str:
    """What was asked, as work that was done: `Sort the orders: edited orders.py`; as it is if nothing was edited."""
    names = _name_files(story)
    if not names:
        return titles.finish_title(asked)
    if values := _name_values(story):
        title = titles.finish_title(titles.cut_title(asked, titles.TITLE_CHARACTERS - len(values)))
        return one_line(f"{title}: {values}", titles.TITLE_CHARACTERS)
    room = titles.TITLE_CHARACTERS - len(f": edited {names[0]}")
    title = titles.finish_title(titles.cut_title(asked, max(room, _SUBJECT_MAX)))
    done = f"edited {names[0]}"
    for name in names[1:]:
        if len(f"{title}: {done}, {name}") <= titles.TITLE_CHARACTERS:
            done += f", {name}"
    return one_line(f"{title}: {done}", titles.TITLE_CHARACTERS)


def _name_values(story: Story) -> str:
    """`RETRY_LIMIT 10 → 30` of a turn that gave one or two settings another value and edited nothing more; else empty."""
    changes = read_changes(story.edits, str)
    is_more = not are_about(story.edits, changes) or any(
        not one.was or len(name_setting(one.key)) < _SETTING_NAME_MIN for one in changes
    )
    names = [name_setting(one.key) for one in changes]
    names = [
        name if len(name) <= _SETTING_NAME_MAX else one.key[-1]
        for name, one in zip(names, changes, strict=True)
    ]
    told = "; ".join(
        f"{name} {one.was} → {one.now}" for name, one in zip(names, changes, strict=True)
    )
    return (
        "" if is_more or not 0 < len(changes) <= _VALUES_MAX or len(told) > _SUBJECT_MAX else told
    )


def _tell_request(
    best: Candidate,
    candidates: Sequence[Candidate],
    salience: Salience,
    statements: Sequence[Statement],
    story: Story,
) -> str:
    """The title of a turn of which the request or one item of many tells most; empty if something else does."""
    if best.origin == "asked":
        return _say_what_was_edited(best.text, story)
    if best.origin != "item" or is_deictic(story.prompt):
        return ""
    names = titles.list_item_names(statements, best.text)
    is_work = doing.does_work(story)
    return _tell_with_request(best, candidates, salience, names, is_work=is_work)


def _tell_with_request(
    item: Candidate,
    candidates: Sequence[Candidate],
    salience: Salience,
    names: Sequence[str],
    *,
    is_work: bool,
) -> str:
    """One item of many with what was asked, of which it tells a part; empty if it tells enough alone.

    `names`: those of all items, if each has one; they stand together. Without space for the item the request
    stands alone, unless something was done.
    """
    request = titles.choose_best(
        (one for one in candidates if one.origin == "asked" and _is_wish(one.text)), salience
    )
    tells_enough = is_work or salience.cover(titles.cut_title(item.text)) >= _COVERED_MIN
    names = () if is_work else names
    if request is None or (not names and tells_enough and titles.says_something(item.text)):
        return ""
    asked = request.text.rstrip("?!. ")
    title = (
        titles.join_names(f"{asked}: {names[0]}", names[1:]) if names else f"{asked}: {item.text}"
    )
    if len(title) <= titles.TITLE_CHARACTERS:
        return titles.finish_title(title)
    return "" if is_work else titles.finish_title(asked)


def _is_wish(sentence: str) -> bool:
    """Whether a sentence asks for something: an order or a question, no remark."""
    first = sentence.split(" ", 1)[0].strip("`:,").lower()
    return first in verbs.ALL or sentence.endswith("?") or sentences.is_question(sentence)


def leave_out(text: str, told_elsewhere: Iterable[str]) -> str:
    """A text without the sentences that say what another memory of the turn says."""
    elsewhere = [frozenset(content_stems(one)) for one in told_elsewhere]
    for sentence in sentences.split_sentences(text) if elsewhere else ():
        if _is_told(sentence, elsewhere):
            text = text.replace(sentence, "", 1)
    return text.strip()


def _is_told(text: str, elsewhere: Sequence[frozenset[str]]) -> bool:
    """Whether another memory of the turn says what this text says."""
    mine = frozenset(content_stems(text))
    return any(
        len(theirs) >= _STEMS_MIN
        and len(mine & theirs) >= _SAME_SHARE * min(len(mine), len(theirs))
        for theirs in elsewhere
    )


def _lengthen(title: str, additions: Iterable[str]) -> str:
    """A title of a few words with what it was about; as it is if there is nothing to add."""
    for text in additions:
        said = titles.finish_title(strip_markup(sentences.make_title(text)))
        if (
            said
            and said.lower() not in title.lower()
            and len(f"{title} {said}".split()) >= _WORDS_MIN
        ):
            return one_line(f"{title}: {said}", titles.TITLE_CHARACTERS)
    return title


def find_outcome_text(story: Story) -> str:
    """The closing message of a turn; without one, what the agent said last."""
    if story.answers:
        return story.answer
    return story.texts[-1].text if story.texts else ""


def _fall_back(story: Story) -> str:
    for text in (*(said.text for said in story.prompts), find_outcome_text(story)):
        if not sentences.is_command(text) and (title := sentences.make_title(text)):
            return titles.finish_title(title)
    return ""


def _list_candidates(
    story: Story, asked: str, statements: Sequence[Statement]
) -> Iterator[Candidate]:
    yield from titles.list_candidates(statements)
    for command in story.commands:
        if subject := titles.read_commit_subject(command.command):
            yield Candidate(subject, "commit")
        if title := titles.read_pull_request_title(command.command):
            yield Candidate(title, "pull request")
    yield from (
        Candidate(title, "client")
        for title in story.client_titles
        if _is_about_turn(title, story, asked)
    )
    if plan := _name_written_plan(story):
        yield Candidate(plan, "written plan")
    if changed := name_definitions(story.edits):
        yield Candidate(changed, "edits")
    own = sentences.extract_own_words(asked) or asked
    for number, sentence in enumerate(sentences.split_sentences(own)[:_ASKED_SENTENCES]):
        plain = _name_wish(sentences.strip_politeness(strip_markup(sentence)))
        if not sentences.is_small_talk(plain) and not tells_nothing(plain):
            yield Candidate(plain, "asked", number, leads=plain.endswith(":"))


def _is_about_turn(title: str, story: Story, asked: str) -> bool:
    """Whether a name for all of the conversation so far fits its last turn, too: that has nearly all of its words."""
    named = {one for one in content_stems(title) if not is_generic(one)}
    paths = " ".join(path.rsplit("/", 1)[-1] for path in story.edited)
    own = set(content_stems(f"{asked}\n{find_outcome_text(story)}\n{paths}"))
    return bool(named) and len(named & own) >= _OWN_SHARE * len(named)


def _name_written_plan(story: Story) -> str:
    """`Planned: sort the orders` of a turn that wrote a plan and changed nothing else; else empty."""
    text = "" if doing.does_work(story) else doing.find_written_plan(story.edits)
    plan = read_plan_text(text)
    return f"Planned: {strip_markup(plan.subject)}" if plan else ""


def _name_wish(sentence: str) -> str:
    """`Can we sort the orders?` as the work that it asks for; any other question as it is."""
    wish = _CAN_WE.sub("", sentence)
    bare = wish.rstrip("?! ")
    is_order = not sentences.is_question(bare) and not _ANY.match(bare)
    return bare if wish != sentence or is_order else sentence


def name_definitions(edits: Sequence[FileEdit]) -> str:
    """`Changed `parse` and `Reader` in reader.py`: what the first edits define; empty if they define nothing."""
    for edit in edits:
        if doing.is_clients_own(edit.path):
            continue
        new = unique(name for name in _DEFINITION.findall(edit.new[:_EDIT_CHARACTERS]))[:2]
        if new and not edit.is_whole_file:
            names = " and ".join(f"`{name}`" for name in new)
            return f"Changed {names} in {edit.path.rsplit('/', 1)[-1]}"
    return ""


def _name_edits(story: Story) -> str:
    names = ", ".join(_name_files(story))
    if values := _name_values(story):
        return f"{values} in {names}"
    return f"Changed {names}" if names else ""


def _name_files(story: Story) -> list[str]:
    """The names of the first edited files, without those that the client keeps for itself."""
    changed = (*story.edited, *doing.list_moved_files(story))
    paths = [path for path in changed if not doing.is_clients_own(path) and "REDACTED" not in path]
    names = unique(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
    return [name for name in names if name][:_NAMES_MAX]
