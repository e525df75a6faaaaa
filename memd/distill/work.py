"""A piece of work, read: the turn that began it, those that went on with it, and what they came to. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from memd.distill import episodes
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Role, Story, Utterance
from memd.models import Event, EventKind
from memd.text import is_private

_SUBSTANCE_CHARACTERS = 160
"""A closing message without work behind it is an outcome from this length on."""
_SUMMARY_CHARACTERS = 300
"""From this length on the message after a few words may sum up the whole piece."""
_EXCHANGES_MAX = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One turn of a piece of work."""

    story: Story
    role: Role
    before: tuple[Exchange, ...]
    """What was said before it, the latest first."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work."""

    parts: tuple[Part, ...]
    """Its turns, in order."""
    main: Part
    """The one that tells best what came of it."""
    whole: Story
    """All of them as one story; its `answer` is the message that tells the outcome."""
    is_open: bool = False
    """Whether something is being done in it: what comes of that is not known yet."""

    @property
    def asking(self) -> Part:
        """The main turn; where nobody prompted it, the last one before it that somebody did."""
        until = self.parts[: self.parts.index(self.main) + 1]
        return next((one for one in reversed(until) if one.story.prompts), self.main)

    @property
    def later(self) -> tuple[Part, ...]:
        """The turns that went on with it."""
        return self.parts[1:]


def read_work(episode: Episode, story: Story, context: EpisodeContext) -> Work:
    """The piece of work that an episode, which tells this story, begins."""
    later = [(one.role, one.events) for one in episode.later if not _is_private(one.events)]
    stories = [(Role.HEAD, story)]
    stories += [(role, episodes.read_story(found, context)) for role, found in later]
    earlier = tuple(context.before.get(episode.key, ()))
    parts: list[Part] = []
    for role, one in stories:
        parts.append(Part(one, role, earlier))
        earlier = (_as_exchange(one), *earlier)[:_EXCHANGES_MAX]
    main = _find_main(parts)
    is_open = episode.ended_by is None and bool(story.commands or story.reads)
    if len(parts) == 1:
        return Work(tuple(parts), main, main.story, is_open)
    followed = (event for _, found in later for event in found)
    events = sorted((*episode.events, *followed), key=lambda e: (e.at, e.id))
    whole = episodes.read_story(events, context)
    outcome = _find_outcome(parts, main)
    answers = (*(said for said in whole.answers if said not in outcome), *outcome)
    return Work(tuple(parts), main, replace(whole, answers=answers), is_open)


def _is_private(found: tuple[Event, ...]) -> bool:
    prompts = (event for event in found if event.kind is EventKind.PROMPT)
    return any(is_private(event.payload.get("prompt")) for event in prompts)


def _as_exchange(story: Story) -> Exchange:
    answer = story.answers[-1] if story.answers else None
    first = story.texts[0].text if story.texts else ""
    return Exchange(story.prompt, answer or (story.texts[-1] if story.texts else None), first)


def _find_main(parts: list[Part]) -> Part:
    """The last turn that changed files, of those that do the work before those that mend it or check it."""
    doing = [one for one in parts if one.role in (Role.HEAD, Role.RESUMED)]
    for some in (doing, parts):
        if changed := [one for one in some if one.story.edits]:
            return changed[-1]
    told = [one for one in doing if len(one.story.told) >= _SUBSTANCE_CHARACTERS]
    return (told or [one for one in doing if one.story.told] or parts)[-1]


def _find_outcome(parts: list[Part], main: Part) -> tuple[Utterance, ...]:
    """The message that tells the outcome: the main turn's, or what sums up the piece after its last task in the background."""
    for one in reversed(parts[parts.index(main) + 1 :]):
        if not one.story.prompts and len(one.story.told) >= _SUMMARY_CHARACTERS:
            return one.story.answers[-1:]
        if one.role is Role.FOLLOWS and len(one.story.told) >= max(
            _SUMMARY_CHARACTERS, len(main.story.told)
        ):
            return one.story.answers[-1:]
    return main.story.answers[-1:]


def list_messages(work: Work) -> Iterator[str]:
    """What the agent said at the end of each turn but the one that tells the outcome, in order."""
    for one in work.parts:
        if one.story.told and one.story.told != work.whole.answer:
            yield one.story.told
