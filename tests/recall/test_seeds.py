"""Features of the published systems that memd offers as a profile or an argument; each test names its source."""

import sys

import pytest

from memd.belief.notes import add_content
from memd.embeddings.command import CommandChat, CommandReranker, pick_environment
from memd.models import EdgeType, Kind, SessionRef, Tier
from memd.recall.profiles import resolve_profile
from memd.store import events, links, projects, usage
from tests.factories import make_new_event, supersede
from tests.indexed_vault import DAY, NOW, IndexedVault

PICKER = """
import json, sys
given = json.load(sys.stdin)
print({reply})
"""
PICKING = {"picked": {"base": "siftcoder", "rerank": "command", "command": ["picker"]}}


@pytest.fixture
def library(db):
    return IndexedVault(db)


@pytest.fixture
def picking(db, tmp_path):
    """A library with a profile whose hits a program picks; the program prints what this expression says."""

    def make(reply, **recall):
        def make_reranker(command):
            assert command == ("picker",)
            chat = CommandChat(
                [sys.executable, "-c", PICKER.format(reply=reply)], deadline_s=60,
                directory=str(tmp_path / "picker"), environ=pick_environment({}, ()), redact=str,
            )  # fmt: skip
            return CommandReranker(chat)

        made = IndexedVault(db, PICKING, **{"rerank_s": 60.0, **recall})
        made.recaller._make_command_reranker = make_reranker
        return made

    return make


# ── siftcoder: "lets the model pick the best subset", "opts.boostFn", focus ──────────────────────


@pytest.mark.parametrize(
    ("reply", "kept"),
    [("[3, 1]", [2, 0]), ("'2\\n3\\n1'", [1, 2, 0]), ("[]", []), ("'```json\\n[2]\\n```'", [1])],
)
async def test_a_program_puts_hits_in_order_and_leaves_the_others_out(picking, reply, kept):
    library = picking(reply)
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(3)]
    answer = await library.ask("kettle", profile="picked", k=5)
    assert [hit.summary.id for hit in answer.hits] == [ids[place] for place in kept]
    assert answer.suppressed.get("not kept by the reranker", 0) == 3 - len(kept)
    assert "rerank" not in answer.degraded
    assert [hit.score for hit in answer.hits] == sorted(
        (hit.score for hit in answer.hits), reverse=True
    )


async def test_a_program_reads_the_question_and_the_candidates_in_their_order(picking):
    library = picking("[c['id'] for c in given['candidates'] if given['query'] in c['text']]")
    library.put("kettle", "is red", days_ago=1)
    wanted = library.put("kettle", "is a red kettle", days_ago=2)
    answer = await library.ask("red kettle", profile="picked", k=5)
    assert [hit.summary.id for hit in answer.hits] == [wanted]


@pytest.mark.parametrize("reply", ["'all of them'", "[1, 1]", "[9]", "''", "[True]"])
async def test_what_a_program_prints_that_names_no_candidates_leaves_the_order(picking, reply):
    library = picking(reply)
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(3)]
    answer = await library.ask("kettle", profile="picked", k=5)
    assert [hit.summary.id for hit in answer.hits] == ids
    assert "did not print ids" in answer.degraded["rerank"]


async def test_a_program_that_is_too_slow_leaves_the_order(picking):
    library = picking("__import__('time').sleep(600)", rerank_s=0.05)
    ids = [library.put(f"kettle {n}", "kettle", days_ago=n) for n in range(2)]
    answer = await library.ask("kettle", profile="picked", k=5)
    assert [hit.summary.id for hit in answer.hits] == ids
    assert "took longer than 0.05 s" in answer.degraded["rerank"]


async def test_a_caller_multiplies_scores_by_factors_of_its_own(library):
    plain = library.put("kettle", "is red", days_ago=1)
    boosted = library.put("kettle", "is red", days_ago=2, files=("src/auth/tokens.py",))
    assert await library.ids("kettle") == [plain, boosted]
    answer = await library.ask("kettle", boost=(("auth/*.py", 3.0), ("red", 2.0)))
    assert [hit.summary.id for hit in answer.hits] == [boosted, plain]
    named = [(part.name, part.value) for part in answer.hits[0].parts if part.name == "boost"]
    assert named == [("boost", 3.0), ("boost", 2.0)]
    lowered = await library.ask("kettle", boost=(("auth/*.py", 0.1),))
    assert [hit.summary.id for hit in lowered.hits] == [plain, boosted]


async def test_the_focus_on_a_folder_counts_for_a_file_memory_by_its_own_path(library):
    """siftcoder: its focus is to "upweight memories from a particular feature area"; a file memory's area is its file's."""
    other = library.put("kettle", "is red", days_ago=1)
    focused = library.put("kettle", "is red", days_ago=2)
    library.db.write_now(
        lambda tx: links.add_edges(
            tx,
            [
                links.NewEdge(
                    "summary", str(focused), EdgeType.DERIVES_FROM, "origin", "/n/auth/keys.md#Use", "file", 1
                )
            ],
        )
    )  # fmt: skip
    assert await library.ids("kettle") == [other, focused]
    assert await library.ids("kettle", focus=("/n/auth/**",)) == [focused, other]


# ── Covalence: "Browse order is different: Core, then MCP, then File" ────────────────────────────


async def test_browsing_lists_core_then_agents_then_files_the_newest_first(library):
    file = library.put("of a file", tier=Tier.FILE, days_ago=1)
    old, new = (library.put(f"an agent's {n}", tier=Tier.AGENT, days_ago=n) for n in (5, 2))
    core = library.put("of the core", tier=Tier.CORE, days_ago=9)
    answer = await library.ask("", browse=True)
    assert [hit.summary.id for hit in answer.hits] == [core, new, old, file]
    assert (answer.verdict, answer.candidates) == ("found", 4)
    assert await library.ids("", browse=True, k=2, offset=1) == [new, old]
    assert await library.ids("", browse=True, kinds=(Kind.FIX,)) == []


# ── ClawMem: "co-activation only boosts results that already passed the threshold", its profiles ──


@pytest.mark.parametrize(
    ("name", "k", "ratio", "floor", "vector"),
    [
        ("clawmem-speed", 5, 0.65, 0.24, 0.0),
        ("clawmem-balanced", 10, 0.55, 0.20, 1.0),
        ("clawmem-deep", 15, 0.45, 0.16, 1.0),
    ],
)
def test_the_profiles_of_surfacing_have_the_published_numbers(name, k, ratio, floor, vector):
    profile = resolve_profile(name, {})
    assert (profile.k, profile.threshold.ratio, profile.threshold.floor) == (k, ratio, floor)
    assert profile.legs["vector"] == vector
    assert [step.signal for step in profile.steps if step.late] == ["coactivation"]


async def test_what_is_too_far_below_the_best_is_left_out_and_spreading_does_not_rescue_it(library):
    # Both are found by the words; the weaker has been returned with the better one ten times.
    for n in range(6):
        library.put(f"A kettle of kind {n}", "kettle, red, teal", days_ago=1, confidence=0.9)
    weak = library.put("Kettle", "x " * 4_000, days_ago=900, confidence=0.1, kind=Kind.SESSION)
    ids = await library.ids("red teal kettle", profile="clawmem", k=9)
    assert weak in ids
    pairs = {(min(n, weak), max(n, weak)): 10 for n in ids if n != weak}
    library.db.write_now(lambda tx: usage.record_uses(tx, {}, pairs))
    answer = await library.ask("red teal kettle", profile="clawmem-balanced", k=9, explain=True)
    assert weak not in [hit.summary.id for hit in answer.hits]
    assert answer.suppressed["score too far below the best"] == 1
    (traced,) = (one for one in answer.trace if one.summary_id == weak)
    assert "coactivation" not in {p.name for p in traced.parts if p.value != 1.0}


# ── Memoturn: turns by cosine, scoped by session, with `distance`; `embedding`, `channels` ─────────


def say(library, text, *, session, days_ago=0):
    at = NOW - days_ago * DAY

    def write(tx):
        project_id = projects.ensure_project(tx, "/a", "a", "", 1)
        number = projects.ensure_session(tx, SessionRef("c", session), project_id, at)
        return number, events.append_event(tx, make_new_event("prompt", at=at, prompt=text), number)

    number, (event_id, *_) = library.db.write_now(write)
    return number, event_id


async def test_turns_are_ranked_by_cosine_with_their_distance_and_within_a_session(library):
    one, near = say(library, "I went vegan in January", session="s1", days_ago=3)
    other, far = say(library, "What can this vegan eat in a January in Norway?", session="s2")
    found = await library.ask("went vegan", profile="memoturn", include_turns=True)
    assert [turn.event_id for turn in found.turns] == [near, far]
    assert 0 < found.turns[0].distance < found.turns[1].distance < 1
    scoped = await library.ask(
        "went vegan", profile="memoturn", include_turns=True, session_id=other
    )
    assert [turn.event_id for turn in scoped.turns] == [far]
    by_words = await library.ask("vegan", include_turns=True, session_id=one)
    assert [turn.event_id for turn in by_words.turns] == [near]


async def test_keywords_find_by_words_what_the_query_alone_does_not(library):
    wanted = library.put("Diet", "vegan since January")
    library.put("Norway", "is cold")
    assert await library.ids("what can this user eat", legs=frozenset({"lexical"})) == []
    found = await library.ids(
        "what can this user eat", keywords="vegan diet", legs=frozenset({"lexical"})
    )
    assert found == [wanted]


# ── MemU: significance in and out ────────────────────────────────────────────────────────────────


async def test_a_rating_ranks_in_its_profile_and_is_no_word_of_the_memory(library):
    routine = library.put("The kettle", "is red", days_ago=1, tags=("significance:1",))
    core = library.put("The kettle", "is red", days_ago=1.1, tags=("significance:10",))
    assert await library.ids("kettle", profile="memu") == [core, routine]
    assert await library.ids("kettle") == [routine, core]
    assert await library.ids("significance") == []
    (hit, _) = (await library.ask("kettle", profile="memu")).hits
    assert hit.summary.significance == 10
    parts = {part.name: part.value for part in hit.parts}
    assert parts["significance"] == pytest.approx(0.1)


# ── MemU: "Match both terms (AND)", "Scoped by time context" ─────────────────────────────────────


async def test_structured_content_stands_beside_the_text_and_not_in_the_snippet(library):
    """Memoturn: a hit has `summary` and `content`."""
    library.put("What this user eats", add_content("Barley soup, no meat.", {"diet": "vegan"}))
    library.put("Kettle", add_content("Kettle", {"litres": 2}))
    (soup,) = (await library.ask("user eats")).hits
    (kettle,) = (await library.ask("kettle")).hits
    assert (soup.snippet, kettle.snippet) == ("Barley soup, no meat.", "Kettle")


async def test_two_words_with_and_between_them_are_both_demanded(library):
    both = library.put("Kettle", "is red")
    library.put("Kettle", "is blue, and a kettle is a kettle")
    library.put("Red", "is the gate")
    assert len(await library.ids("kettle red")) == 3
    assert await library.ids("kettle AND red") == [both]
    assert await library.ids('"kettle" AND red') == [both]
    assert await library.ids("kettle and red", all_words=True) == [both]


async def test_where_no_memory_has_both_sides_of_and_the_answer_says_so(library):
    library.put("Kettle", "is blue")
    library.put("Red", "is the gate")
    answer = await library.ask("kettle AND red")
    assert len(answer.hits) == 2
    assert (answer.verdict, answer.reason) != ("found", "")


async def test_a_month_among_keywords_needs_no_preposition(library):
    # NOW is in January 2027
    february = library.put("Meeting notes", "of the team", days_ago=340)
    library.put("Meeting notes", "of the board", days_ago=10)
    answer = await library.ask("meeting notes February")
    assert [hit.summary.id for hit in answer.hits] == [february]
    assert answer.notes[0] == "only 2026-02"


@pytest.mark.parametrize(
    "text", ["who wrote the meeting notes for May", "june", "render june calendar", "why march on"]
)
async def test_a_month_in_a_sentence_or_alone_filters_nothing(library, text):
    wanted = library.put("Meeting notes", f"{text}: all of it", days_ago=10)
    assert wanted in await library.ids(text)


# ── Three hits alike ─────────────────────────────────────────────────────────────────────────────


async def test_three_hits_in_a_row_that_say_the_same_become_one(library):
    texts = (
        "The deploy script retries uploads three times",
        "The deploy script retries an upload three times.",
        "deploy script retries the uploads three times",
    )
    ids = [library.put(text, days_ago=n) for n, text in enumerate(texts)]
    other = library.put("The deploy script needs a token", "to upload", days_ago=9)
    answer = await library.ask("deploy script uploads")
    assert [hit.summary.id for hit in answer.hits] == [ids[0], other]
    (first, _) = answer.hits
    assert sorted(first.alike) == ids[1:]
    assert first.told_alike.startswith("2 more like it: #")


@pytest.mark.parametrize(
    "texts",
    [
        [f"The deploy script retries uploads {n} times" for n in (3, 4, 5)],
        [f"The {page} page of the shop is rendered with React" for page in ("login", "cart", "home")],
        ["Retry uploads of the deploy", "Never retry uploads of the deploy", "Do not retry uploads"],
        ["The deploy script retries uploads", "deploy script retries the uploads"],
    ],
    ids=["numbers", "subjects", "negation", "only two"],
)  # fmt: skip
async def test_hits_that_differ_in_a_value_a_subject_or_a_negation_stay_apart(library, texts):
    ids = [library.put(text, days_ago=n) for n, text in enumerate(texts)]
    assert set(await library.ids("deploy uploads retries page shop")) == set(ids)


async def test_a_hit_that_was_replaced_says_by_what(library):
    old = library.put("The queue is Redis", days_ago=2)
    new = library.put("The queue is Postgres", days_ago=1)
    supersede(library.db, new, old, rule="by-hand")
    answer = await library.ask("queue", include_superseded=True)
    hits = {hit.summary.id: hit for hit in answer.hits}
    assert (hits[old].summary.superseded_by, hits[old].replaced_by) == (
        new,
        "The queue is Postgres",
    )
    assert hits[new].replaced_by is None


def test_a_profile_that_reranks_by_a_program_names_one():
    with pytest.raises(Exception, match="need each other"):
        resolve_profile("mine", {"mine": {"base": "memd", "rerank": "command"}})
