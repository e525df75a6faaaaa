"""A lesser voice never overrules a greater one, by whatever path it comes: a daemon's workers over one vault."""

import ast
from pathlib import Path

import pytest

import memd
from memd.consolidate.judgments import NewJudgment
from memd.consolidate.remember import NewMemory
from memd.errors import BadRequest
from memd.models import Authority, Kind, SessionRef, Stance
from memd.store import judgments
from tests.whole_vault import WholeVault

HAND, PROMPT, _, CALL, TEXT, TOOL = sorted(Authority, reverse=True)
PLACE = "/nowhere/a"


class Talk:
    """What three speakers do to one vault."""

    def __init__(self, path, clock):
        self.vault, self.clock, self._turns = WholeVault(path, clock), clock, 0

    def hand(self, text, **more):
        """The user by hand: `memd remember`."""
        return self._remember(text, "user", HAND, **more)

    def call(self, text, **more):
        """The agent by tool call: `mem_remember`."""
        return self._remember(text, "agent", CALL, **more)

    def _remember(self, text, source, authority, kind=Kind.DECISION, key=PLACE, **more):
        self.clock.advance(s=1)
        memory = NewMemory(
            text, kind=kind, project_key=key, source=source, authority=authority,
            session=SessionRef("claude-code", "s", PLACE), **more,
        )  # fmt: skip
        return self.vault.call(self.vault.curator.remember, memory)

    def turn(self, prompt, answer="Done.", output=None):
        """One turn of a session, distilled."""
        self._turns += 1
        base = {"session_id": f"s{self._turns}", "cwd": PLACE, "prompt_id": f"p{self._turns}"}
        said = [{**base, "hook_event_name": "UserPromptSubmit", "prompt": prompt}]
        if output is not None:
            said.append({
                **base, "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
                "tool_use_id": f"u{self._turns}", "tool_input": {"command": "make check"}, "error": output,
            })  # fmt: skip
        said.append({**base, "hook_event_name": "Stop", "last_assistant_message": answer})
        for one in said:
            self.clock.advance(s=1)
            self.vault.capture([one])
        self.vault.settle()

    def pin(self, number, by=HAND, pinned=True):
        return self.vault.call(self.vault.curator.pin, number, pinned, by)

    def judge(self, one, relation, other, who="agent"):
        self.clock.advance(s=1)
        ruling = NewJudgment(one, other, relation, "because", who)
        return self.vault.call(self.vault.judge.judge, ruling)

    def consolidate(self):
        self.vault.settle()
        self.clock.advance(s=1)
        return self.vault.tick()

    def get(self, number):
        return self.vault.all().get(number)

    def shown(self):
        """What is visible: id → memory, without turns."""
        return {
            number: one
            for number, one in self.vault.all().items()
            if one.superseded_by is None and one.archived_at is None
            if one.rule != "turn"
        }

    def against(self, number):
        """Which visible memories contradict it."""
        found = self.vault.db.read_now(lambda tx: judgments.visible_contradictions(tx, [number]))
        return set(found.get(number, ()))


@pytest.fixture
def talk(tmp_path, clock):
    talk = Talk(tmp_path / "v.db", clock)
    yield talk
    talk.vault.close()


STATED = "We keep sessions in SQLite"
RETELLINGS = (
    ("What does the ADR of the upstream project say?",
     "It is short. Decision: sessions move from SQLite to Redis."),
    ("How do others do it?", "A typical team would say: Decision: we moved the sessions from SQLite to Redis."),
    ("Move the sessions.", "Decision: sessions move from SQLite to Redis, because three machines share them."),
    ("Move the sessions.", "We decided to move sessions from SQLite to Redis because it scales."),
    ("Go on.", "I have moved them. Decision: we no longer keep sessions in SQLite; sessions live in Redis instead."),
    ("Clean it up.", "Decision: this replaces the earlier decision to keep sessions in SQLite. Sessions live in Postgres."),
    ("Please read the page.", "Decision – sessions: Redis instead of SQLite because there are three machines."),
    ("Tidy the store.", "Decision: we keep sessions in SQLite no longer."),
)  # fmt: skip
MOVED = RETELLINGS[2]
STATED_BY_AGENT = MOVED[1]


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize(("prompt", "answer"), RETELLINGS)
def test_the_agent_s_sentence_hides_no_decision_of_the_user(talk, prompt, answer, pinned):
    mine = talk.hand(STATED).id
    if pinned:
        talk.pin(mine)
    talk.turn(prompt, answer)
    talk.consolidate()
    now = talk.get(mine)
    assert (now.superseded_by, now.body, now.authority) == (None, STATED, HAND)
    assert (now.pinned_by is HAND) is pinned


def test_what_the_agent_says_against_the_user_is_a_contradiction_to_judge(talk):
    mine = talk.hand(STATED).id
    other = talk.call(MOVED[1]).id
    talk.judge(other, Stance.CONTRADICTS, mine)
    assert talk.against(mine) == {other}
    assert talk.get(other).authority is CALL
    assert talk.against(other) == {mine}
    assert talk.vault.db.read_now(judgments.count_open_contradictions) == 1
    talk.judge(other, Stance.SUPERSEDES, mine, "user")
    assert talk.get(mine).superseded_by == other
    assert talk.vault.db.read_now(judgments.count_open_contradictions) == 0


def test_a_lesser_voice_against_a_memory_lowers_no_trust_in_it(talk):
    mine = talk.hand(STATED).id
    trust = talk.get(mine).confidence
    talk.judge(talk.call(MOVED[1]).id, Stance.CONTRADICTS, mine)
    talk.consolidate()
    against = talk.against(mine)
    assert against
    assert talk.get(mine).confidence == trust
    for other in against:
        # Where both have the same standing, both are doubtful.
        talk.pin(other)
        assert talk.get(mine).confidence < trust
        talk.pin(other, pinned=False)
        assert talk.get(mine).confidence == pytest.approx(trust)


def test_a_prompt_of_the_user_does_not_replace_what_the_user_said_by_hand(talk):
    mine = talk.hand(STATED).id
    talk.pin(mine)
    talk.turn(
        "Decision: sessions move from SQLite to Redis because there are three machines now.",
        "Fine.",
    )
    assert talk.get(mine).superseded_by is None
    (other,) = talk.against(mine)
    assert talk.get(other).authority is PROMPT


def test_the_user_replaces_what_the_agent_said(talk):
    theirs = talk.call(STATED).id
    talk.turn(
        "Decision: sessions move from SQLite to Redis because there are three machines now.",
        "Fine.",
    )
    assert talk.get(theirs).superseded_by is not None


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.FACT, Kind.NOTE, Kind.INSTRUCTION, Kind.TASK])
@pytest.mark.parametrize("key", ["store.sessions", "Store.Sessions", "STORE.SESSIONS"])
def test_a_topic_key_from_a_lesser_voice_hides_nothing(talk, kind, key):
    mine = talk.hand(STATED, topic_key="store.sessions").id
    done = talk.call("Sessions live in Redis", topic_key=key, kind=kind)
    assert done.superseded == ()
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == {done.id}
    newer = talk.hand("Sessions live in Postgres", topic_key=key, kind=kind)
    assert set(newer.superseded) == {mine, done.id}


COPIES = (
    "", " This rule is void.", " It no longer holds.", " Ignore this.", " Except on Mondays.",
    " Superseded by the new policy.", " Done.",
)  # fmt: skip


@pytest.mark.parametrize("kind", [Kind.INSTRUCTION, Kind.FACT, Kind.DECISION, Kind.NOTE])
@pytest.mark.parametrize("addition", COPIES)
def test_a_copy_of_the_agent_s_hides_nothing_of_the_user_s(talk, kind, addition):
    text = "Always run the linter before a commit of the ledger."
    mine = talk.hand(text, kind=kind).id
    for way in (talk.call, talk.call):
        way(text + addition, kind=kind)
    talk.consolidate()
    now = talk.get(mine)
    assert (now.superseded_by, now.body, now.authority) == (None, text, HAND)


def test_the_user_s_words_hide_the_agent_s_copy_of_them(talk):
    text = "The ledger keeps its backups for exactly 30 days"
    theirs = talk.call(text, kind=Kind.NOTE).id
    mine = talk.hand(text, kind=Kind.FACT).id
    copy = talk.call(text, kind=Kind.FACT, key=PLACE, topic_key=None).id
    assert copy == mine
    talk.consolidate()
    assert talk.get(theirs).superseded_by == mine
    late = talk.call(f"  {text}!", kind=Kind.FACT).id
    assert late == mine


def test_an_agent_s_repetition_changes_nothing_of_the_user_s(talk):
    mine = talk.hand("The port is 8080", kind=Kind.FACT).id
    before = talk.get(mine)
    done = talk.call("The port is 8080", kind=Kind.FACT, expires_at=talk.clock() + 5, tags=("x",))
    now = talk.get(mine)
    assert (done.id, done.outcome) == (mine, "duplicate")
    assert (now.expires_at, now.tags, now.authority, now.at) == (None, (), HAND, before.at)
    assert now.duplicates == 2


def test_the_user_s_repetition_makes_the_agent_s_statement_the_user_s(talk):
    theirs = talk.call("The port is 8080", kind=Kind.FACT).id
    assert talk.hand("The port is 8080", kind=Kind.FACT).id == theirs
    assert talk.get(theirs).authority is HAND
    assert talk.call("The port is 9090", kind=Kind.FACT).superseded == ()
    assert talk.get(theirs).superseded_by is None


def test_a_retold_decision_keeps_the_user_s_words_and_reverses_only_what_the_user_reverses(talk):
    mine = talk.hand("We keep the queue in RabbitMQ", kind=Kind.DECISION)
    old = talk.turn("We decided to keep the cache in Memcached.", "Noted.")
    assert old is None
    before = {n for n, s in talk.shown().items() if s.kind is Kind.DECISION}
    talk.turn(
        "We decided to use Valkey for the index.",
        "We decided to use Valkey for the index instead of Memcached for the cache.",
    )
    assert before <= talk.shown().keys()
    assert mine.id in before


@pytest.mark.parametrize("relation", Stance)
def test_an_agent_s_judgment_hides_nothing_of_the_user_s(talk, relation):
    mine, theirs = talk.hand(STATED).id, talk.call("Sessions could live anywhere at all").id
    talk.pin(theirs, CALL)
    if relation is Stance.DUPLICATE:
        with pytest.raises(BadRequest, match="not hidden behind a copy"):
            talk.judge(theirs, relation, mine)
    else:
        done = talk.judge(theirs, relation, mine)
        assert (done.outcome == "asked") is (relation is Stance.SUPERSEDES)
    assert talk.get(mine).superseded_by is None
    if relation is Stance.SUPERSEDES:
        # It waits for the user, and puts no doubt on his word until then.
        assert not talk.against(mine)
    talk.judge(mine, Stance.SUPERSEDES, theirs)
    assert talk.get(theirs).superseded_by == mine


@pytest.mark.parametrize("relation", Stance)
def test_an_agent_does_not_change_what_the_user_has_judged(talk, relation):
    old, new = talk.hand("Deploy on Mondays").id, talk.hand("Deploy on Tuesdays").id
    talk.judge(new, Stance.SUPERSEDES, old, "user")
    if relation is not Stance.SUPERSEDES:
        with pytest.raises(BadRequest, match="only the user"):
            talk.judge(new, relation, old)
    with pytest.raises(BadRequest, match="only the user"):
        talk.judge(old, relation, new)
    with pytest.raises(BadRequest, match="only the user"):
        talk.vault.call(talk.vault.judge.undo, new, old, CALL)
    assert talk.get(old).superseded_by == new


def test_an_agent_does_not_undo_what_the_user_replaced(talk):
    old = talk.hand("make", topic_key="build", kind=Kind.FACT).id
    new = talk.hand("ninja", topic_key="build", kind=Kind.FACT).id
    with pytest.raises(BadRequest, match="only the user"):
        talk.vault.call(talk.vault.judge.undo, new, old, CALL)
    with pytest.raises(BadRequest, match="only the user"):
        talk.judge(new, Stance.COMPATIBLE, old)
    assert talk.call("make", topic_key="build", kind=Kind.FACT).outcome == "duplicate"
    assert (talk.get(old).superseded_by, talk.get(new).superseded_by) == (new, None)


def test_an_agent_s_old_value_returns_beside_the_user_s_as_a_contradiction(talk):
    theirs = talk.call("make", topic_key="build", kind=Kind.FACT).id
    mine = talk.hand("ninja", topic_key="build", kind=Kind.FACT).id
    assert talk.get(theirs).superseded_by == mine
    assert talk.call("make", topic_key="build", kind=Kind.FACT).outcome == "revived"
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == {theirs}


def test_pins_are_undone_by_who_made_them_or_a_greater_voice(talk):
    number = talk.call("The port is 8080", kind=Kind.FACT).id
    assert talk.pin(number, CALL).pinned_by is CALL
    assert talk.get(number).tier == "agent"
    first = talk.get(number).pinned_at
    talk.clock.advance(s=1)
    mine = talk.pin(number, HAND)
    assert (mine.pinned_by, mine.pinned_at, mine.tier) == (HAND, first, "core")
    assert talk.pin(number, CALL).pinned_by is HAND
    with pytest.raises(BadRequest, match="only the user unpins it"):
        talk.pin(number, CALL, pinned=False)
    assert talk.get(number).pinned_by is HAND
    assert talk.pin(number, HAND, pinned=False).pinned_by is None


def test_what_the_user_pinned_of_the_agent_s_is_not_replaced_by_the_agent(talk):
    number = talk.call("make", topic_key="build", kind=Kind.FACT).id
    talk.pin(number)
    assert talk.call("ninja", topic_key="build", kind=Kind.FACT).superseded == ()
    assert talk.get(number).superseded_by is None


def test_a_merge_of_projects_hides_nothing_of_the_user_s(talk):
    mine = talk.hand("make", topic_key="build", kind=Kind.FACT).id
    older = talk.call("cmake", topic_key="Build", kind=Kind.FACT, key="/nowhere/b").id
    theirs = talk.call("ninja", topic_key="BUILD", kind=Kind.NOTE, key="/nowhere/b").id
    assert talk.get(older).superseded_by == theirs
    done = talk.vault.call(talk.vault.curator.merge, "/nowhere/b", PLACE, dry_run=False)
    assert [(one.newer_id, one.older_id) for one in done.kept] == [(theirs, mine)]
    assert talk.get(mine).superseded_by is None
    assert talk.against(mine) == {theirs}


def test_an_import_hides_and_changes_nothing_of_the_user_s(talk, tmp_path, clock):
    mine = talk.hand("make", topic_key="build", kind=Kind.FACT).id
    other = Talk(tmp_path / "other.db", clock)
    try:
        other.call("ninja", topic_key="Build", kind=Kind.FACT)
        talk.vault.take_in(other.vault.exported())
    finally:
        other.vault.close()
    assert talk.get(mine).superseded_by is None
    assert len(talk.against(mine)) == 1


def test_a_tool_s_output_hides_nothing(talk):
    mine = talk.hand("Decision: sessions live in SQLite.").id
    talk.pin(mine)
    talk.turn(
        "Run the checks.", "They fail.",
        "Exit code 1\nDecision: sessions move from SQLite to Redis.\n"
        "FAILED tests/test_store.py::test_sessions - AssertionError: sessions live in SQLite no longer",
    )  # fmt: skip
    talk.consolidate()
    assert talk.get(mine).superseded_by is None
    failures = [s for s in talk.shown().values() if s.kind is Kind.FAILURE]
    assert {one.authority for one in failures} == {TOOL}


def test_only_one_module_lets_a_memory_be_hidden():
    """Every path asks `belief/supersede.py`, which asks whose word it is.

    What other devices say is decided for all of it together, by `sharing/merge.py`, which ranks voices, too.
    """
    hiding = {"supersede": "links", "pin_summary": "summaries", "raise_authority": "summaries"}
    callers = set()
    root = Path(memd.__file__).parent
    for path in root.rglob("*.py"):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if any(map(source.__contains__, hiding)) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                if name in hiding and ast.unparse(node.func.value) == hiding[name]:
                    callers.add(str(path.relative_to(root)))
    assert callers == {"belief/supersede.py", "store/statements.py"}
