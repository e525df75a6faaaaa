"""After any sequence of operations on a vault, what holds is found and what was forgotten is erased.

`MEMD_LONG=1000` in the environment tries that many and longer sequences instead of a few.
"""

import contextlib
import os
import tempfile
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

from memd.consolidate.forget import ForgetSelection
from memd.consolidate.judgments import NewJudgment
from memd.consolidate.remember import NewMemory
from memd.consolidate.wanted_words import parse_wanted_words
from memd.errors import BadRequest
from memd.models import Authority, Kind, SessionRef, Stance
from memd.store import projects
from memd.store.erasure import ErasureBounds
from tests.conftest import StoppedClock
from tests.whole_vault import Known, Model, WholeVault, rare, staying_above, turn

TOPICS = ("deploy.host", None)
WAYS = ("The {0} of it is {1}.", "The {0} of it is the {1}.", "{0} of it is {1}")
"""The same said in several ways."""
SESSIONS = ("one", "two")
PROJECTS = ("/nowhere/a", "/nowhere/a", "/nowhere/a", None)
VALUES = st.tuples(
    st.sampled_from(TOPICS),
    st.sampled_from(PROJECTS),
    st.sampled_from([None, *SESSIONS]),
    st.integers(1, 3),
)
TIDIED = (None, False, True)
_PICK = st.integers(0, 20)
"""Which memory, the latest first."""
LONG = os.environ.get("MEMD_LONG")
EXAMPLES, STEPS = (int(LONG) if LONG else 8), (40 if LONG else 15)


class Life(RuleBasedStateMachine):
    """Any sequence of what people and agents do."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StoppedClock()
        self.vault = WholeVault(Path(self.folder.name, "0.db"), self.clock)
        self.model = Model()
        self.moved = self.drawn = 0
        self.is_standing = False
        self.exports = []

    def teardown(self):
        if hasattr(self, "vault"):
            self.vault.close()
            self.folder.cleanup()

    def word(self):
        self.drawn += 1
        return rare(self.drawn)

    def pick(self, number):
        ids = sorted(self.model.known, reverse=True)
        return ids[number % len(ids)]

    def pair(self, number, step):
        """Two memories; of one step, a pair of which one hides the other if there is any."""
        linked = sorted(self.vault.chains().items()) if step == 1 else []
        if linked:
            return linked[number % len(linked)][:: 1 if number % 2 else -1]
        return self.pick(number), self.pick(number + step)

    def has(self, count=1):
        return len(self.model.known) >= count

    def learn(self, *, may_change=(), words=()):
        """Compare the model with the vault: only these may have changed, and what is new is taken over."""
        self.vault.settle()
        now = self.vault.all()
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

    @rule(is_standing=st.booleans())
    def the_clock_stands(self, is_standing):
        """Whatever comes now happens within one millisecond, until the clock goes on."""
        self.is_standing = is_standing

    def _go_on(self):
        if not self.is_standing:
            self.clock.advance(ms=1)

    @rule(values=st.lists(VALUES, min_size=1, max_size=3), tidied=st.sampled_from(TIDIED))
    def remember(self, values, tidied):
        """Say something new, perhaps in several ways, and tidy up."""
        for topic, project, session, times in values:
            words = self.word(), self.word()
            ref = SessionRef("claude-code", session) if session else None
            for way in WAYS[:times]:
                self._say(
                    NewMemory(
                        way.format(*words), kind=Kind.DECISION, topic_key=topic,
                        project_key=project, session=ref, source="user", authority=Authority.USER_HAND,
                    ),
                    words,
                )  # fmt: skip
        if tidied is not None:
            self._tidy(taken_back=tidied)

    def said(self):
        """What may be said again, what is hidden first."""
        known = self.model.known
        whole = [number for number, one in known.items() if one.said and one.is_whole]
        return sorted(whole, key=lambda number: (known[number].is_shown, number))

    @precondition(lambda self: self.said())
    @rule(number=st.integers(0, 3), way=st.sampled_from(WAYS))
    def say_again(self, number, way):
        ids = self.said()
        known = self.model.known[ids[number % len(ids)]]
        old = known.said
        text = way.format(*known.words)
        again = NewMemory(
            text, kind=old.kind, topic_key=old.topic_key, project_key=old.project_key,
            session=old.session, source="user", authority=Authority.USER_HAND,
        )  # fmt: skip
        self._say(again, known.words)

    def _say(self, memory, words):
        before = self.vault.chains()
        kept = self.vault.call(self.vault.curator.remember, memory)
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
            judged = self.vault.judged(number, kept.id)
            assert not known[number].is_shown or judged or now[number].pinned_at
        # What was forgotten may be said again.
        self.model.gone -= set(words)
        self.model.past -= set(words)

    @rule(session=st.sampled_from(SESSIONS), failing=st.booleans())
    def work(self, session, failing):
        words = self._captured(session, failing)
        self.learn(words=words)
        for word in words if failing else words[:2]:
            assert self.vault.found(word)[1]

    def _captured(self, session, failing):
        """The rare words of a turn that is not distilled yet."""
        words = self.word(), self.word(), self.word()
        self.clock.advance(ms=5)
        self.vault.capture(turn(session, f"p{self.drawn}", *words, failing=failing))
        return words

    @precondition(lambda self: self.has())
    @rule(number=_PICK, pinned=st.booleans())
    def pin(self, number, pinned):
        self.vault.call(self.vault.curator.pin, self.pick(number), pinned, Authority.USER_HAND)
        self.learn()

    @precondition(lambda self: self.has(2))
    @rule(
        one=_PICK,
        step=st.integers(1, 3),
        relation=st.sampled_from(Stance),
        taken_back=st.booleans(),
    )
    def judge(self, one, step, relation, taken_back):
        pair = one, other = self.pair(one, step)
        before, fresh = self.model.shown(), not self.vault.judged(one, other)
        reason = self.word()
        with contextlib.suppress(BadRequest):
            ruling = NewJudgment(one, other, relation, f"said {reason}", "user")
            done = self.vault.call(self.vault.judge.judge, ruling)
            self.learn(may_change=pair)
            if relation in {Stance.SUPERSEDES, Stance.DUPLICATE}:
                assert not self.model.known[other].is_shown
            else:
                chains = self.vault.chains()
                assert chains.get(one) != other
                assert chains.get(other) != one
            if taken_back and done.outcome == "judged":
                self._go_on()
                self.vault.call(self.vault.judge.undo, one, other, Authority.USER_HAND)
                self.learn(may_change=pair)
                assert not fresh or self.model.shown() == before, "undone is not as before"
                assert not self.vault.judged(one, other)

    @precondition(lambda self: self.has(2))
    @rule(one=_PICK, step=st.integers(1, 3))
    def undo(self, one, step):
        pair = self.pair(one, step)
        with contextlib.suppress(BadRequest):
            self.vault.call(self.vault.judge.undo, *pair, Authority.USER_HAND)
        self.learn(may_change=pair)
        assert not self.vault.judged(*pair)

    @rule(taken_back=st.booleans())
    def consolidate(self, taken_back):
        self._tidy(taken_back=taken_back)

    def _tidy(self, *, taken_back):
        self.vault.settle()
        before, known = self.model.shown(), self.model.known
        by_words = {}
        for number, one in known.items():
            if one.said:
                by_words.setdefault(one.words, []).append(number)
        twins = {number for some in by_words.values() if len(some) > 1 for number in some}
        # Without the words that set them apart, others say the same, too.
        twins |= {number for number, one in known.items() if not one.is_whole}
        ticks = self.vault.tick()
        self.learn(may_change=twins)
        assert self.model.shown() <= before, "a round shows what was hidden"
        for some in by_words.values():
            assert not before.intersection(some) or self.model.shown().intersection(some)
        runs = [tick.run for tick in ticks if tick.run and (tick.superseded or tick.contradicts)]
        if taken_back and runs:
            for run in reversed(runs):
                self.vault.call(self.vault.consolidator.undo, f"r{run}", dry_run=False)
            self.learn(may_change=twins)
            assert self.model.shown() == before, "a round that was undone is not as before"
            self.vault.tick()
            self.learn()

    # ── What goes ──────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.has())
    @rule(
        numbers=st.lists(_PICK, min_size=1, max_size=2), by_word=st.booleans(), hides=st.booleans()
    )
    def forget(self, numbers, by_word, hides):
        ids = {self.pick(number) for number in numbers}
        if hides and (chains := self.vault.chains()):
            # What both hides and is hidden first: the middle of a chain.
            ids = {min(chains.values(), key=lambda one: (one not in chains, one))}
        words = self.model.known[min(ids)].words[:1] if by_word else ()
        wanted = ForgetSelection(words=parse_wanted_words(" ".join(words)))
        self._forget(wanted if words else ForgetSelection(tuple(ids)))

    @rule(key=st.sampled_from(SESSIONS), is_late=st.booleans())
    def forget_session(self, key, is_late):
        late = self._captured(key, failing=True) if is_late else ()
        found = self.vault.db.read_now(lambda tx: projects.find_sessions(tx, key))
        for one in found:
            self._forget(ForgetSelection(bounds=ErasureBounds(session_id=one.id)), late)

    def _forget(self, selection, late=()):
        chains = self.vault.chains()
        told = self.vault.call(self.vault.curator.forget, selection, dry_run=True)
        done = self.vault.call(
            self.vault.curator.forget, selection, dry_run=False, token=told.token
        )
        assert (told.count, told.events, told.revived) == (done.count, done.events, done.revived)
        ids = {summary.id for summary in done.summaries}
        assert done.count == len(ids)
        before = set(self.model.known)
        gone = [self.model.known.pop(number) for number in ids & before]
        # The stale beginning of a chain stays hidden if its end stays.
        below = {old for old, new in chains.items() if new in ids and old not in ids}
        assert set(done.revived) == {old for old in below if not staying_above(old, chains, ids)}
        for number in set(done.revived) & self.model.known.keys():
            self.model.known[number].is_shown = True
        now = self.learn()
        assert not ids & now.keys()
        left = {word for one in self.model.known.values() for word in one.words}
        if not done.kept_events:
            self.model.gone |= {word for one in gone for word in one.words} - left | set(late)
        assert not self.vault.remains(self.model.gone)

    @precondition(lambda self: self.has())
    @rule(number=_PICK)
    def scrub(self, number):
        words = self.model.known[self.pick(number)].words
        if not words:
            return
        self.vault.call(self.vault.curator.scrub, words[0], dry_run=False)
        for one in self.model.known.values():
            if words[0] in one.words:
                one.words = tuple(word for word in one.words if word != words[0])
                one.is_whole = False
        self.model.past.add(words[0])
        self.learn()

    # ── What moves ─────────────────────────────────────────────────────────────────────────────

    @rule()
    def rest(self):
        self.vault.save()

    @rule(is_late=st.booleans(), anew=st.booleans())
    def restart(self, is_late, anew):
        words = self._captured(SESSIONS[0], failing=True) if is_late else ()
        self.vault.restart()
        if anew:
            self.vault.call(self.vault.indexer.reindex)
        self.learn(words=words)

    @rule()
    def move(self):
        """Export everything into a new vault, and go on with that."""
        self.vault.settle()
        data = self.vault.exported()
        self.exports.append(data)
        self.moved += 1
        new = WholeVault(Path(self.folder.name, f"{self.moved}.db"), self.clock)
        self.vault, old = new, self.vault
        old.close()
        merged = new.take_in(data)
        assert not merged.left
        assert not merged.hidden
        assert new.exported() == data
        numbers = {summary.uid: number for number, summary in new.all().items()}
        self.model.known = {numbers[one.uid]: one for _, one in sorted(self.model.known.items())}
        self.learn()

    @precondition(lambda self: self.exports)
    @rule(number=_PICK)
    def take_in_what_was(self, number):
        """Bring an older export in again: nothing forgotten returns, nothing changes what it is."""
        self.vault.settle()
        data = self.exports[number % len(self.exports)]
        self.vault.take_in(data)
        # It may know what was scrubbed since.
        self.model.past.clear()
        self.learn()

    # ── What must hold ─────────────────────────────────────────────────────────────────────────

    @invariant()
    def it_holds(self):
        if not hasattr(self, "vault"):
            return
        vault, known = self.vault, self.model.known
        vault.settle()
        self._go_on()
        assert not vault.wrong()
        chains = vault.chains()
        for number in chains:
            seen = {number}
            while (number := chains.get(number)) is not None:
                assert number not in seen, "a circle"
                seen.add(number)
        words = {word for one in known.values() for word in one.words}
        for word in sorted(words):
            having = {number for number, one in known.items() if word in one.words}
            assert vault.found(word, hidden=True)[1] == having
            hits, shown = vault.found(word)
            assert shown == having & self.model.shown()
            assert hits <= self.model.shown()
        assert not vault.remains(self.model.gone | self.model.past)
        some = " ".join(sorted(words)[:3]) or "nothing"
        assert vault.scores(some) == vault.scores_from_scratch(some)


def slot_of(memory):
    """What one value holds at a time."""
    return memory.topic_key, memory.project_key, memory.kind


def test_whatever_is_done_what_holds_is_found_and_what_is_forgotten_is_gone():
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, print_blob=False,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
