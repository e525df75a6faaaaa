from hypothesis import given, settings
from hypothesis import strategies as st

from memd.distill.extract import distil
from memd.distill.segment import Episode, segment
from memd.distill.story import Context
from memd.models import EventKind
from tests.make import AT, make_event

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = (
    "prompt", "last_assistant_message", "tool_input", "tool_response", "error", "compact_summary", "agent_type",
    "is_interrupt", "tool_name",
)  # fmt: skip
TELLING = st.sampled_from(
    [
        "we decided to use a over b because c", "from now on always run make check", "pytest", "Bash", "Edit",
        "Traceback (most recent call last):\nKeyError: 'a'", "decision: x y", "we changed our mind", "<summary>",
    ]
)  # fmt: skip
values = (
    TELLING
    | json
    | st.fixed_dictionaries({"command": TELLING, "file_path": TELLING, "edits": json})
)
payloads = st.dictionaries(st.sampled_from(FIELDS), values, max_size=5)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(list(EventKind)), payloads), min_size=1, max_size=8))
def test_no_payload_however_strange_stops_the_distiller(rows):
    events = []
    for number, (kind, payload) in enumerate(rows, 1):
        given_tool = payload.get("tool_name")
        event = make_event(
            kind, id=number, **{k: v for k, v in payload.items() if k != "tool_name"}
        )
        if isinstance(given_tool, str):
            event = make_event(kind, id=number, **{**event.payload, "tool_name": given_tool})
        events.append(event)
    context = Context(body_characters=300)
    drafts = distil(Episode("t1", tuple(events), "stop"), context)
    assert len({draft.slot for draft in drafts}) == len(drafts)
    slots = {draft.slot for draft in drafts}
    for draft in drafts:
        assert draft.title.strip()
        assert "\n" not in draft.title
        assert len(draft.body) <= 300
        assert draft.sources
        assert all(len(source.quote) <= 200 for source in draft.sources)
        assert 0 <= draft.quality <= 1
        assert {edge.to_id for edge in draft.edges if edge.to_kind == "slot"} <= slots
    assert distil(Episode("t1", tuple(events), "stop"), context) == drafts


def test_an_episode_of_nothing_yields_nothing():
    (episode,) = segment([make_event(prompt="ok")], AT, 1)
    assert distil(episode, Context()) == []


def test_nothing_is_remembered_of_a_private_turn():
    events = [
        make_event("prompt", id=1, prompt="[REDACTED:private]"),
        make_event("stop", id=2, last_assistant_message="From now on always run make check."),
    ]
    (episode,) = segment(events, AT * 2, 1)
    assert distil(episode, Context()) == []
