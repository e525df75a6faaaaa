"""Three speakers do whatever they can to one vault, and nobody but the user touches what is the user's."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from memd.errors import BadRequest
from memd.models import Authority, Kind, Stance
from tests.test_authority import PLACE, Talk

HAND, CALL = Authority.USER_HAND, Authority.AGENT_CALL
TEXTS = (
    "We keep sessions in SQLite", "Sessions move from SQLite to Redis", "The TTL is 5 minutes",
    "The TTL is 60 minutes", "Always run the linter before a commit",
    "Always run the linter before a commit. This rule is void.",
    "Never run the linter before a commit",
)  # fmt: skip
SPOKEN = (
    "Decision: we keep sessions in SQLite.",
    "Decision: sessions move from SQLite to Redis because there are three machines.",
    "We decided to keep sessions in SQLite no longer; this replaces the earlier decision.",
    "From now on, always run the linter before a commit.",
    "Always run the linter before a commit.",
)
KINDS = st.sampled_from([Kind.DECISION, Kind.FACT, Kind.NOTE, Kind.INSTRUCTION])
KEYS = st.sampled_from([None, "store", "STORE", "ttl"])
PLACES = st.sampled_from([PLACE, "/nowhere/b"])
PICK = st.integers(0, 9)


class StillClock:
    """A clock that only the test moves; UTC milliseconds."""

    def __init__(self):
        self.now = 1_800_000_000_000

    def __call__(self):
        return self.now

    def advance(self, s=0, ms=0):
        self.now += 1_000 * s + ms


class ThreeSpeakers(RuleBasedStateMachine):
    """What the user says is remembered as it was after each word of the user's, and compared after the others'."""

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="memd-"))
        self.talk = Talk(self.home / "v.db", StillClock())
        self.saved = b""

    def teardown(self):
        self.talk.vault.close()
        shutil.rmtree(self.home)

    @initialize(pinned=st.booleans())
    def begin(self, pinned):
        number = self.talk.hand(TEXTS[0], topic_key="store").id
        if pinned:
            self.talk.pin(number)

    # ── What is the user's ─────────────────────────────────────────────────────────────────────

    def users(self):
        """What the user said or pinned, as nobody else may change it: id → what must stay."""
        return {
            number: (one.title, one.body, one.kind, one.topic_key, one.expires_at, one.archived_at)
            for number, one in self.talk.vault.all().items()
            if one.standing.speaker == "user"
        }

    def hidden(self):
        """Which of the user's memories are hidden, and by which."""
        return {
            number: one.superseded_by
            for number, one in self.talk.vault.all().items()
            if one.standing.speaker == "user" and one.superseded_by is not None
        }

    @contextlib.contextmanager
    def somebody_else(self):
        """Nothing of the user's is hidden, shown again, changed, unpinned, demoted or lost by the block."""
        before = self.talk.vault.all()
        words, hidden = self.users(), self.hidden()
        yield
        after = self.talk.vault.all()
        assert words.items() <= self.users().items()
        for number in words:
            was, now = before[number], after[number]
            assert now.authority >= was.authority
            if was.pinned_by is HAND:
                assert (now.pinned_at, now.pinned_by) == (was.pinned_at, HAND)
        newly = {n: by for n, by in self.hidden().items() if n in words and n not in hidden}
        # Only another word of the user's may do that, which waited to be compared.
        assert all(after[by].authority.speaker == "user" for by in newly.values())
        assert hidden.items() <= self.hidden().items()

    def pick(self, number):
        ids = sorted(self.talk.vault.all())
        return ids[number % len(ids)]

    # ── The user ───────────────────────────────────────────────────────────────────────────────

    @rule(text=st.sampled_from(TEXTS), kind=KINDS, key=KEYS, place=PLACES)
    def the_user_remembers(self, text, kind, key, place):
        self.talk.hand(text, kind=kind, topic_key=key, key=place)

    @rule(text=st.sampled_from(SPOKEN))
    def the_user_says(self, text):
        self.talk.turn(text, "Fine.")

    @rule(number=PICK, pinned=st.booleans())
    def the_user_pins(self, number, pinned):
        self.talk.pin(self.pick(number), HAND, pinned)

    @rule(one=PICK, other=PICK, relation=st.sampled_from(Stance))
    def the_user_judges(self, one, other, relation):
        with contextlib.suppress(BadRequest):
            self.talk.judge(self.pick(one), relation, self.pick(other), "user")

    # ── The agent and its tools ────────────────────────────────────────────────────────────────

    @rule(text=st.sampled_from(TEXTS), kind=KINDS, key=KEYS, place=PLACES, ends=st.booleans())
    def the_agent_remembers(self, text, kind, key, place, ends):
        expires_at = self.talk.clock() + 60_000 if ends else None
        with self.somebody_else():
            self.talk.call(text, kind=kind, topic_key=key, key=place, expires_at=expires_at)

    @rule(text=st.sampled_from(SPOKEN))
    def the_agent_says(self, text):
        with self.somebody_else():
            self.talk.turn("Move the sessions.", f"I did. {text}")

    @rule(text=st.sampled_from(SPOKEN))
    def a_tool_prints(self, text):
        with self.somebody_else():
            self.talk.turn("Run it.", "It fails.", f"Exit code 1\n{text}\nError: {text}")

    @rule(number=PICK, pinned=st.booleans())
    def the_agent_pins(self, number, pinned):
        number = self.pick(number)
        mine = self.talk.get(number).standing.speaker == "user"
        with contextlib.suppress(BadRequest):
            if mine and pinned:
                # It may be kept more, never less.
                words = self.users()
                self.talk.pin(number, CALL, pinned)
                assert self.users() == words
            else:
                with self.somebody_else():
                    self.talk.pin(number, CALL, pinned)

    @rule(one=PICK, other=PICK, relation=st.sampled_from(Stance))
    def the_agent_judges(self, one, other, relation):
        with self.somebody_else(), contextlib.suppress(BadRequest):
            self.talk.judge(self.pick(one), relation, self.pick(other), "agent")

    @rule(one=PICK, other=PICK)
    def the_agent_undoes(self, one, other):
        with self.somebody_else(), contextlib.suppress(BadRequest):
            pair = self.pick(one), self.pick(other)
            self.talk.vault.call(self.talk.vault.judge.undo, *pair, CALL)

    # ── What happens by itself, or moves everything ────────────────────────────────────────────

    @rule()
    def consolidate(self):
        with self.somebody_else():
            self.talk.consolidate()

    @rule()
    def export(self):
        self.talk.vault.settle()
        self.saved = self.talk.vault.exported()

    @precondition(lambda self: self.saved)
    @rule()
    def take_in_an_export(self):
        with self.somebody_else():
            self.talk.vault.take_in(self.saved)

    @rule()
    def take_in_another_vault(self):
        clock = StillClock()
        clock.now = self.talk.clock() + 5_000
        with tempfile.TemporaryDirectory(prefix="memd-") as home:
            other = Talk(Path(home) / "other.db", clock)
            try:
                other.call("Sessions live in Postgres", topic_key="Store")
                other.turn("Move the sessions.", SPOKEN[1])
                data = other.vault.exported()
            finally:
                other.vault.close()
        with self.somebody_else():
            self.talk.vault.take_in(data)

    @precondition(lambda self: len({one.project_id for one in self.talk.vault.all().values()}) > 1)
    @rule()
    def merge_the_projects(self):
        with self.somebody_else():
            self.talk.vault.call(self.talk.vault.curator.merge, "/nowhere/b", PLACE, dry_run=False)


TestThreeSpeakers = ThreeSpeakers.TestCase
TestThreeSpeakers.settings = settings(
    max_examples=8,
    stateful_step_count=14,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
