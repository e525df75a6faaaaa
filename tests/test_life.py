"""Whatever is done to a vault, and in whatever order: what holds is found, what is forgotten is gone."""

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memd.consolidate.curator import Memory
from memd.consolidate.forgetting import Selection
from memd.consolidate.judging import Ruling
from memd.errors import BadRequest
from memd.models import Kind, SessionRef, Stance
from memd.store import projects
from memd.store.selecting import Bounds
from tests.conftest import StoppedClock
from tests.vault_life import House, rare

TOPICS = (None, None, "deploy.host", "cache.backend")
WAYS = ("The {0} of it is {1}.", "The {0} of it is the {1}.", "The {0} of it is  {1}")
"""The same said in several ways."""
SESSIONS = ("one", "two")
PROJECTS = ("/nowhere/a", None)
_PICK = st.integers(0, 10_000)
LONG = os.environ.get("MEMD_LONG")
EXAMPLES, STEPS = (int(LONG) if LONG else 8), (40 if LONG else 15)


@dataclass
class Known:
    """What the model says of a memory."""

    words: tuple[str, ...]
    uid: str
    is_shown: bool = True
    said: Memory | None = None
    """None: it was distilled, or its words were scrubbed."""


@dataclass
class Model:
    """What must be visible, hidden and gone."""

    known: dict[int, Known] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    past: set[str] = field(default_factory=set)
    """Scrubbed: gone until an older export says it again."""

    def shown(self):
        return {number for number, one in self.known.items() if one.is_shown}


class Life(RuleBasedStateMachine):
    """Any sequence of what people and agents do."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StoppedClock()
        self.house = House(Path(self.folder.name, "0.db"), self.clock)
        self.model = Model()
        self.moved = self.drawn = 0
        self.exports = []

    def teardown(self):
        if hasattr(self, "house"):
            self.house.close()
            self.folder.cleanup()

    def word(self):
        self.drawn += 1
        return rare(self.drawn)

    def pick(self, number):
        ids = sorted(self.model.known)
        return ids[number % len(ids)]

    def has(self, count=1):
        return len(self.model.known) >= count

    def learn(self, *, may_change=(), words=()):
        """Compare the model with the vault: only these may have changed, and what is new is taken over."""
        self.house.settle()
        now = self.house.all()
        known = self.model.known
        assert known.keys() <= now.keys(), "a memory is lost"
        for number, summary in now.items():
            is_shown = summary.superseded_by is None
            if number not in known:
                text = f"{summary.title} {summary.body}"
                mine = tuple(word for word in words if word in text)
                known[number] = Known(mine, summary.uid, is_shown)
            elif number in may_change:
                known[number].is_shown = is_shown
            else:
                assert known[number].is_shown == is_shown, f"#{number} has changed"
        return now

    # ── What happens ───────────────────────────────────────────────────────────────────────────

    @rule(ms=st.sampled_from([1, 1_000, 86_400_000]))
    def time_passes(self, ms):
        self.clock.advance(ms=ms)

    @rule(
        topic=st.sampled_from(TOPICS), kind=st.sampled_from([Kind.NOTE, Kind.DECISION]),
        project=st.sampled_from(PROJECTS), session=st.sampled_from([None, *SESSIONS]),
    )  # fmt: skip
    def remember(self, topic, kind, project, session):
        words = self.word(), self.word()
        ref = SessionRef("claude-code", session) if session else None
        self._say(
            Memory(
                WAYS[0].format(*words), kind=kind, topic_key=topic, project_key=project,
                session=ref, source="user",
            ),
            words,
        )  # fmt: skip

    def said(self):
        return [n for n, one in sorted(self.model.known.items()) if one.said]

    @precondition(lambda self: self.said())
    @rule(number=_PICK, way=st.sampled_from(WAYS))
    def say_again(self, number, way):
        ids = self.said()
        known = self.model.known[ids[number % len(ids)]]
        old = known.said
        text = way.format(*known.words)
        again = Memory(
            text, kind=old.kind, topic_key=old.topic_key, project_key=old.project_key,
            session=old.session, source="user",
        )  # fmt: skip
        self._say(again, known.words)

    def _say(self, memory, words):
        before = self.house.chains()
        kept = self.house.call(self.house.curator.remember, memory)
        known = self.model.known
        slot = {
            number
            for number, one in known.items()
            if memory.topic_key and one.said and slot_of(one.said) == slot_of(memory)
        }
        now = self.learn(may_change=slot | {kept.id, before.get(kept.id)}, words=words)
        assert kept.id
        known[kept.id].said = known[kept.id].said or memory
        assert known[kept.id].is_shown, "what was said last is hidden"
        for number in slot - {kept.id}:
            judged = self.judged(number, kept.id)
            assert not known[number].is_shown or judged or now[number].pinned_at
        # What was forgotten may be said again.
        self.model.gone -= set(words)
        self.model.past -= set(words)

    def judged(self, one, other):
        rows = (
            "SELECT 1 FROM judgments WHERE undone_at IS NULL AND"
            " (newer_id, older_id) IN ((?1, ?2), (?2, ?1))"
        )
        return self.house.db.read_now(lambda tx: tx.execute(rows, (one, other)).get)

    @rule(session=st.sampled_from(SESSIONS), failing=st.booleans())
    def work(self, session, failing):
        words = self._captured(session, failing)
        self.learn(words=words)
        for word in words if failing else words[:2]:
            assert self.house.found(word)[1]

    def _captured(self, session, failing):
        """The rare words of a turn that nobody has distilled yet."""
        words = self.word(), self.word(), self.word()
        self.clock.advance(ms=5)
        self.house.capture(turn(session, f"p{self.drawn}", *words, failing=failing))
        return words

    @precondition(lambda self: self.has())
    @rule(number=_PICK, pinned=st.booleans())
    def pin(self, number, pinned):
        self.house.call(self.house.curator.pin, self.pick(number), pinned)
        self.learn()

    @precondition(lambda self: self.has(2))
    @rule(
        one=_PICK, other=_PICK, relation=st.sampled_from(Stance), taken_back=st.booleans()
    )
    def judge(self, one, other, relation, taken_back):
        pair = one, other = self.pick(one), self.pick(other)
        before, fresh = self.model.shown(), not self.judged(one, other)
        reason = self.word()
        with contextlib.suppress(BadRequest):
            ruling = Ruling(one, other, relation, f"said {reason}", "user")
            done = self.house.call(self.house.judge.judge, ruling)
            self.learn(may_change=pair)
            if relation in {Stance.SUPERSEDES, Stance.DUPLICATE}:
                assert not self.model.known[other].is_shown
            else:
                chains = self.house.chains()
                assert chains.get(one) != other
                assert chains.get(other) != one
            if taken_back and done.outcome == "judged":
                self.clock.advance(ms=1)
                self.house.call(self.house.judge.undo, one, other)
                self.learn(may_change=pair)
                assert not fresh or self.model.shown() == before, "undone is not as before"
                assert not self.judged(one, other)

    @precondition(lambda self: self.has(2))
    @rule(one=_PICK, other=_PICK)
    def undo(self, one, other):
        pair = self.pick(one), self.pick(other)
        with contextlib.suppress(BadRequest):
            self.house.call(self.house.judge.undo, *pair)
        self.learn(may_change=pair)
        assert not self.judged(*pair)

    @rule(taken_back=st.booleans())
    def consolidate(self, taken_back):
        self.house.settle()
        before, known = self.model.shown(), self.model.known
        by_words = {}
        for number, one in known.items():
            if one.said:
                by_words.setdefault(one.words, []).append(number)
        twins = {number for some in by_words.values() if len(some) > 1 for number in some}
        ticks = self.house.tick()
        self.learn(may_change=twins)
        assert self.model.shown() <= before, "a round shows what was hidden"
        for some in by_words.values():
            assert not before.intersection(some) or self.model.shown().intersection(some)
        runs = [tick.run for tick in ticks if tick.run and (tick.superseded or tick.contradicts)]
        if taken_back and runs:
            for run in reversed(runs):
                self.house.call(self.house.consolidator.undo, f"r{run}", dry_run=False)
            self.learn(may_change=twins)
            assert self.model.shown() == before, "a round that was undone is not as before"
            self.house.tick()
            self.learn()

    # ── What goes ──────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.has())
    @rule(numbers=st.lists(_PICK, min_size=1, max_size=3))
    def forget_ids(self, numbers):
        self._forget(Selection(tuple({self.pick(number) for number in numbers})))

    @precondition(lambda self: self.has())
    @rule(number=_PICK)
    def forget_words(self, number):
        if words := self.model.known[self.pick(number)].words:
            self._forget(Selection(words=words[:1]))

    @rule(key=st.sampled_from(SESSIONS), is_late=st.booleans())
    def forget_session(self, key, is_late):
        late = self._captured(key, failing=True) if is_late else ()
        found = self.house.db.read_now(lambda tx: projects.find_sessions(tx, key))
        for one in found:
            self._forget(Selection(bounds=Bounds(session_id=one.id)), late)

    def _forget(self, selection, late=()):
        chains = self.house.chains()
        told = self.house.call(self.house.curator.forget, selection, dry_run=True)
        done = self.house.call(
            self.house.curator.forget, selection, dry_run=False, token=told.token
        )
        assert (told.count, told.events, told.revived) == (done.count, done.events, done.revived)
        ids = {summary.id for summary in done.summaries}
        assert done.count == len(ids)
        before = set(self.model.known)
        gone = [self.model.known.pop(number) for number in ids & before]
        below = {older for older, newer in chains.items() if newer in ids}
        assert set(done.revived) <= below
        for number in set(done.revived) & self.model.known.keys():
            self.model.known[number].is_shown = True
        now = self.learn()
        assert not ids & now.keys()
        left = {word for one in self.model.known.values() for word in one.words}
        if not done.kept_events:
            self.model.gone |= {word for one in gone for word in one.words} - left | set(late)
        assert not self.house.remains(self.model.gone)

    @precondition(lambda self: self.has())
    @rule(number=_PICK)
    def scrub(self, number):
        words = self.model.known[self.pick(number)].words
        if not words:
            return
        self.house.call(self.house.curator.scrub, words[0], dry_run=False)
        for one in self.model.known.values():
            if words[0] in one.words:
                one.words = tuple(word for word in one.words if word != words[0])
                one.said = None
        self.model.past.add(words[0])
        self.learn()

    # ── What moves ─────────────────────────────────────────────────────────────────────────────

    @rule(is_late=st.booleans())
    def restart(self, is_late):
        words = self._captured(SESSIONS[0], failing=True) if is_late else ()
        self.house.restart()
        self.learn(words=words)

    @rule()
    def reindex(self):
        self.house.call(self.house.indexer.reindex)

    @rule()
    def move(self):
        """Move into a fresh vault, and live on there."""
        self.house.settle()
        data = self.house.exported()
        self.exports.append(data)
        self.moved += 1
        new = House(Path(self.folder.name, f"{self.moved}.db"), self.clock)
        self.house, old = new, self.house
        old.close()
        merged = new.take_in(data)
        assert not merged.left
        assert not merged.hidden
        assert new.exported() == data
        numbers = {summary.uid: number for number, summary in new.all().items()}
        self.model.known = {
            numbers[one.uid]: one for _, one in sorted(self.model.known.items())
        }
        self.learn()

    @precondition(lambda self: self.exports)
    @rule(number=_PICK)
    def take_in_what_was(self, number):
        """Bring an older export in again: nothing forgotten returns, nothing changes what it is."""
        self.house.settle()
        data = self.exports[number % len(self.exports)]
        self.house.take_in(data)
        # It may know what was scrubbed since.
        self.model.past.clear()
        self.learn()

    # ── What must hold ─────────────────────────────────────────────────────────────────────────

    @invariant()
    def it_holds(self):
        if not hasattr(self, "house"):
            return
        house, known = self.house, self.model.known
        self.house.settle()
        assert not house.wrong()
        chains = house.chains()
        for number in chains:
            seen = {number}
            while (number := chains.get(number)) is not None:
                assert number not in seen, "a circle"
                seen.add(number)
        words = {word for one in known.values() for word in one.words}
        for word in sorted(words):
            having = {number for number, one in known.items() if word in one.words}
            assert house.found(word, hidden=True)[1] == having
            hits, shown = house.found(word)
            assert shown == having & self.model.shown()
            assert hits <= self.model.shown()
        assert not house.remains(self.model.gone | self.model.past)
        some = " ".join(sorted(words)[:3]) or "nothing"
        assert house.answer(some) == house.answer_from_scratch(some)


def slot_of(memory):
    """What one value holds at a time."""
    return memory.topic_key, memory.project_key, memory.kind


def turn(session, number, asked, chosen, failed, *, failing):
    """A turn in which something is asked, fails if need be and is mended, and something decided."""
    base = {"session_id": session, "cwd": "/nowhere/a", "prompt_id": number}
    command = {"command": f"make {failed}"}
    tool = {**base, "tool_name": "Bash", "tool_input": command}
    events = [
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": f"Where does {asked} live?"}
    ]
    if failing:
        events += [
            {
                **tool, "hook_event_name": "PostToolUseFailure", "tool_use_id": f"{number}a",
                "error": f"Exit code 1\nValueError: {failed} is not there",
            },
            {
                **base, "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": f"{number}b",
                "tool_input": {"file_path": f"/nowhere/a/{failed}.py", "old_string": "x", "new_string": "y"},
                "tool_response": {},
            },
            {
                **tool, "hook_event_name": "PostToolUse", "tool_use_id": f"{number}c",
                "tool_response": {"stdout": "ok", "stderr": "", "interrupted": False},
            },
        ]  # fmt: skip
    said = f"It lives in the drawer. We chose {chosen} because it is quick and small."
    return [*events, {**base, "hook_event_name": "Stop", "last_assistant_message": said}]


def test_whatever_is_done_what_holds_is_found_and_what_is_forgotten_is_gone():
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
