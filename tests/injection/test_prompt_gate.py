from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.injection import prompt_gate
from memd.injection.prompt_gate import (
    CountedTitles,
    PromptEvidence,
    find_names,
    find_shared_words,
    gate_hits,
)
from memd.models import Kind
from memd.recall import Answer, Hit, RelevanceGate, TermRarity
from memd.recall.verdict import keep_relevant, keep_relevant_hits
from tests.factories import make_summary
from tests.indexed_vault import IndexedVault
from tests.tables import every_row


@every_row(
    "prompt",
    ["hi", "Hello!", "good morning Claude", "yes", "ok, go on", "continue", "thanks", "do it",
     "yes please, go ahead and do that", "looks good to me, ship it", "1", "2 and 3", "👍", "try again",
     "please", "no", "deploy", "what?", "fix", "guten Morgen", "ja, mach weiter bitte", "merci beaucoup",
     "buenos días", "sí, por favor continúa", "спасибо большое", "продолжай пожалуйста", "好的，继续",
     "ありがとうございます"],
)  # fmt: skip
def test_greetings_and_acknowledgements_are_not_searched_for(prompt):
    assert prompt_gate.read_prompt(prompt).text == ""
    assert "fewer than 2 words" in prompt_gate.read_prompt(prompt).reason


@every_row(
    "prompt", ["/compact keep the decisions", "/clear", "  /memd:status now please", "!ls build",
               "# always use tabs in makefiles"],
)  # fmt: skip
def test_commands_to_the_client_are_not_searched_for(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "a command to the client"


@every_row(
    "prompt",
    ["# Login\n\nThe session expires too early.", "#12 fails on postgres, why?", "!!! login is broken\nwhy?"],
)  # fmt: skip
def test_a_heading_or_a_number_is_no_command(prompt):
    assert prompt_gate.read_prompt(prompt).text


def test_a_path_is_no_command():
    assert prompt_gate.read_prompt("/home/dev/app/auth.py raises a ValueError, why").text


@every_row("prompt", ["[REDACTED:private]", " [REDACTED:private]\n[REDACTED:jwt] "])
def test_a_private_prompt_is_not_searched_for(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "all of it is private"
    assert prompt_gate.read_prompt("  ").reason == "it is empty"


def test_what_is_private_is_not_looked_for():
    judged = prompt_gate.read_prompt("Where do [REDACTED:private] sessions live in staging?")
    assert "REDACTED" not in judged.text
    assert len(judged.words) == 3


def test_content_words_count_once_however_they_are_inflected():
    assert prompt_gate.read_prompt("test the tests, testing tested!").text == ""
    assert len(prompt_gate.read_prompt("why do the session tests fail").words) == 3


def test_text_without_spaces_has_words_too():
    assert prompt_gate.read_prompt("セッションはどこに保存されますか").text


def test_names_and_topics_are_read():
    judged = prompt_gate.read_prompt("does build.command still call decode_token in app/auth.py?")
    assert {"decode_token", "app/auth.py", "auth.py"} <= set(judged.names)
    assert judged.topics == ("build.command",)
    assert prompt_gate.read_prompt("why does refs/heads/main stay behind?").names == ()


def test_a_repeat_is_known_whatever_its_dress():
    assert prompt_gate.is_repeated("Why does login FAIL?", ["thanks", "why does  login fail"])
    assert not prompt_gate.is_repeated("Why does login fail?", ["why does logout fail"])


def test_of_a_long_paste_only_the_ends_are_looked_for():
    paste = "\n".join(f"2026-11-20 12:00:{i:02} worker{i} heartbeat" for i in range(200))
    judged = prompt_gate.read_prompt(
        f"Why is the queue stuck? See the log.\n{paste}\nI suspect the broker."
    )
    assert "queue stuck" in judged.text
    assert "suspect the broker" in judged.text
    assert "worker99" not in judged.text
    fenced = f"Look at this.\n```\n{paste}\n```\nWhy is the kettle cold?"
    assert "worker1 " not in prompt_gate.read_prompt(fenced).text
    assert "kettle" in prompt_gate.read_prompt(fenced).text


@given(st.text(max_size=4_000))
def test_any_prompt_is_judged(prompt):
    judged = prompt_gate.read_prompt(prompt)
    assert judged.reason
    assert len(judged.text) <= 4_000


def test_words_stand_in_a_text_by_their_stems_and_names_by_themselves():
    def words_in(prompt, text):
        return len(find_shared_words(prompt_gate.read_prompt(prompt).words, text))

    assert words_in("where does the session live", "Sessions live in Redis") == 2
    assert words_in("the kettle in redis", "Sessions live in Redis") == 1
    assert find_names(["decode_token"], "`Decode_Token` reads them") == ("decode_token",)
    assert find_names(["decode_token"], "decode_tokens reads them") == ()
    assert find_names(["a/b.py"], "Split a/b.py") == ("a/b.py",)


def test_courtesies_are_not_looked_for():
    judged = prompt_gate.read_prompt(
        "Hi Claude, please retry the upload of the session files, thanks!"
    )
    assert judged.text.split() == [
        ",",
        "retry",
        "the",
        "upload",
        "of",
        "the",
        "session",
        "files,",
        "!",
    ]


@pytest.fixture
def library(db):
    return IndexedVault(db)


def make_scored_hit(score, coverage=1.0, **more):
    summary = make_summary(id=more.pop("id", 1))
    return Hit(summary, "p", None, "", score, (), (), coverage=coverage, **more)


def kept_scores(hits, *, floor=0.3, ratio=0.5, limit=10):
    return [one.score for one in keep_relevant_hits(hits, RelevanceGate(floor, ratio), limit)]


def test_a_hit_within_the_ratio_of_the_best_passes():
    assert kept_scores([make_scored_hit(2.0), make_scored_hit(1.0), make_scored_hit(0.99)]) == [
        2.0,
        1.0,
    ]
    assert kept_scores(
        [make_scored_hit(2.0), make_scored_hit(1.9), make_scored_hit(1.8)], limit=2
    ) == [2.0, 1.9]
    assert kept_scores([make_scored_hit(2.0), make_scored_hit(1.0)], ratio=1.0) == [2.0]
    assert kept_scores([make_scored_hit(2.0), make_scored_hit(0.0)], ratio=0.0) == [2.0, 0.0]


def test_no_hit_passes_where_even_the_best_covers_too_little():
    assert kept_scores([make_scored_hit(9.0, 0.29), make_scored_hit(8.0, 0.1)]) == []
    assert kept_scores([make_scored_hit(9.0, 0.3), make_scored_hit(8.0, 0.1)]) == [9.0, 8.0]
    assert kept_scores([make_scored_hit(9.0, None)]) == []
    assert kept_scores([make_scored_hit(9.0, None)], floor=0.0) == [9.0]
    assert kept_scores([]) == []


def test_a_strong_hit_that_is_far_behind_does_not_save_a_weak_best_one():
    assert kept_scores([make_scored_hit(9.0, 0.1), make_scored_hit(1.0, 0.9)]) == []


def test_a_hit_by_topic_key_was_asked_for_by_name():
    assert kept_scores([make_scored_hit(1.0, 0.0, topic_rank=1)], floor=1.0) == [1.0]


def test_below_zero_the_distance_counts_alike():
    assert kept_scores([make_scored_hit(-1.0), make_scored_hit(-1.5), make_scored_hit(-1.51)]) == [
        -1.0,
        -1.5,
    ]


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(0, 1)), max_size=8),
    st.floats(0, 1), st.floats(0, 1), st.integers(0, 9),
)  # fmt: skip
def test_the_hits_that_pass_are_the_first_ones(found, floor, ratio, limit):
    hits = [make_scored_hit(score, share) for score, share in sorted(found, reverse=True)]
    kept = keep_relevant_hits(hits, RelevanceGate(floor, ratio), limit)
    assert kept == hits[: len(kept)]
    assert len(kept) <= limit


def test_what_was_left_out_is_counted():
    answer = Answer(
        (make_scored_hit(2.0, id=1), make_scored_hit(0.1, id=2)),
        "memd",
        None,
        0.0,
        suppressed={"expired": 1},
    )
    found = keep_relevant(answer, RelevanceGate(0.3, 0.5), 5)
    assert [one.summary.id for one in found.hits] == [1]
    assert found.suppressed == {"expired": 1, "weak": 1}
    assert keep_relevant(found, RelevanceGate(0.3, 0.5), 5) is found


async def test_a_question_that_the_vault_knows_is_answered_and_small_talk_is_not(library):
    wanted = library.put("Sessions live in Redis", "Three machines share them.")
    for number in range(9):
        library.put(f"kettle {number}", "thanks, that looks good to me")
    asked = {"relevance_gate": RelevanceGate(), "explain": True}
    assert [h.summary.id for h in (await library.ask("where do sessions live", **asked)).hits] == [
        wanted
    ]
    answer = await library.ask("thanks, please tidy up the zebra crossing tomorrow", **asked)
    assert answer.hits == ()
    assert answer.suppressed["weak"] > 0
    assert answer.trace[0].verdict == "weak: even the best covers too little"
    assert "hit" not in {one.verdict for one in answer.trace}


@pytest.mark.parametrize("profile", ["memd", "siftcoder", "covalence", "clawmem", "memu"])
async def test_coverage_does_not_depend_on_the_profile(library, profile):
    library.put("Sessions live in Redis")
    library.put("Redis")
    answer = await library.ask(
        "redis sessions", profile=profile, relevance_gate=RelevanceGate(0.0, 0.0)
    )
    shares = {
        make_scored_hit.summary.id: make_scored_hit.coverage for make_scored_hit in answer.hits
    }
    assert shares[1] == pytest.approx(1.0)
    # as if of 50 memories 2 had redis, 1 had sessions: ln(1 + 48.5/2.5), ln(1 + 49.5/1.5)
    assert shares[2] == pytest.approx(3.0155 / (3.0155 + 3.5264), abs=1e-3)


async def test_a_long_text_is_measured_by_its_eight_rarest_words(library):
    library.put("alpha bravo charlie delta echo foxtrot golf hotel")
    words = " ".join(f"unheard{chr(97 + i)}" for i in range(30))
    asked = {"relevance_gate": RelevanceGate(0.0, 0.0)}
    (short,) = (await library.ask("alpha bravo charlie delta", **asked)).hits
    (long,) = (await library.ask(f"alpha bravo charlie delta {words}", **asked)).hits
    assert short.coverage == pytest.approx(1.0)
    # as if of 50: four words of idf ln(1 + 49.5/1.5) against eight of ln(1 + 50.5/0.5)
    assert long.coverage == pytest.approx(4 * 3.5264 / (8 * 4.6250), abs=1e-3)


async def test_a_young_vault_is_not_silenced_by_one_word_that_it_does_not_know(library):
    library.put("Chose SQLite over Redis", "One file is enough.")
    library.put("The linter runs first")
    library.put("Redis is down on Sundays")
    answer = await library.ask(
        "why did we choose sqlite over redis", relevance_gate=RelevanceGate(0.4, 0.5)
    )
    assert answer.hits[0].summary.title == "Chose SQLite over Redis"


PROMPT = prompt_gate.read_prompt("where do the sessions live")
GATE = RelevanceGate(floor=0.4, ratio=0.5)


def make_hit(number, score, *, coverage=1.0, title="Sessions live in Redis", **more):
    ranks = {k: more.pop(k) for k in ("topic_rank",) if k in more}
    summary = make_summary(title, id=number, **more)
    return Hit(summary, "p", None, "", score, (), (), coverage=coverage, **ranks)


def injected_ids(hits, seen=None, asked=PROMPT):
    return [o.hit.summary.id for o in gate_hits(hits, asked, seen or {}, GATE, 3) if o.is_shown]


def reasons(hits, seen=None, asked=PROMPT):
    return {o.hit.summary.id: o.why for o in gate_hits(hits, asked, seen or {}, GATE, 3)}


def test_no_more_hits_are_injected_than_the_limit():
    hits = [make_hit(n, 2.0) for n in range(1, 6)]
    assert injected_ids(hits) == [1, 2, 3]
    assert reasons(hits)[4] == "there were enough better ones"


def test_what_the_agent_has_already_is_passed_over_and_still_measures_the_others():
    hits = [make_hit(1, 2.0), make_hit(2, 1.5), make_hit(3, 0.9)]
    assert injected_ids(hits, {1: "shown to this session already"}) == [2]
    assert reasons(hits, {1: "shown to this session already"})[1] == "shown to this session already"


def test_one_word_of_the_prompt_is_not_enough():
    hits = [make_hit(1, 2.0, title="Redis sessions"), make_hit(2, 2.0)]
    assert injected_ids(hits) == [2]
    assert reasons(hits)[1].startswith("it only mentions it")


def test_one_name_is_enough():
    asked = prompt_gate.read_prompt("please look at decode_token first")
    assert injected_ids(
        [make_hit(1, 2.0, title="decode_token raises ValueError")], asked=asked
    ) == [1]


@every_row("said", ["issue 46", "#46", "https://git.example/shop/issues/46"])
def test_what_is_about_another_issue_is_not_injected(said):
    asked = prompt_gate.read_prompt(f"the Redis sessions of {said} live too long")
    other = make_hit(1, 2.0, title="Redis sessions of #70 live too long")
    same = make_hit(2, 2.0, title="Redis sessions of issue #46 live too long")
    assert injected_ids([other, same], asked=asked) == [2]
    assert reasons([other], asked=asked)[1] == "it is about #70, not #46"


def test_a_hit_named_by_its_topic_is_injected():
    found = make_hit(1, 2.0, coverage=0.0, title="make all", topic_rank=1)
    assert injected_ids([found]) == [1]
    assert reasons([found])[1] == "the prompt names its topic"


def test_only_one_memory_of_a_turn_is_injected():
    of_turn = {"session_id": 4, "episode": "t1"}
    hits = [
        make_hit(1, 2.0, **of_turn),
        make_hit(2, 1.9, **of_turn),
        make_hit(3, 1.8, session_id=5, episode="t1"),
    ]
    assert injected_ids(hits) == [1, 3]
    assert reasons(hits)[2] == "from the same turn as #1"
    assert injected_ids([make_hit(1, 2.0), make_hit(2, 1.9)]) == [1, 2]


@every_row(
    "prompt",
    ["can we add tests for this?", "yes, add an integration test with several steps", "ok use the second variant there"],
)  # fmt: skip
def test_a_reply_to_what_was_just_said_is_not_searched_for(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "a reply to what was said before"


@every_row(
    "prompt",
    ["Operation stopped by hook: another session runs here", "<task-notification>the build of the site is done"],
)  # fmt: skip
def test_what_the_client_wrote_is_not_searched_for(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "a text of the client, not of the user"


def test_a_reply_that_names_something_is_searched_for():
    assert prompt_gate.read_prompt("yes, rename parse_token in auth.py").text
    assert prompt_gate.read_prompt("Where do the login sessions live now?").text


def test_what_a_long_body_only_mentions_is_not_injected():
    asked = prompt_gate.read_prompt("Where do the login sessions live?")
    far = make_hit(
        1, 9.0, coverage=0.9, title="Renamed a table", body="x " * 300 + "login sessions"
    )
    near = make_hit(2, 9.0, coverage=0.9, title="Moved login sessions to Redis", body="x " * 300)
    gate = RelevanceGate(floor=0.4, ratio=0.5)
    found = prompt_gate.gate_hits([far, near], asked, {}, gate, 3)
    assert [one.is_shown for one in found] == [False, True]
    assert found[0].why.startswith("it only mentions it")


def rarity_of(**known):
    """Terms that some memories have; all others are as rare as can be."""
    return TermRarity(known, 5.0)


def shown_with(rarity, prompt, *hits):
    asked = prompt_gate.read_prompt(prompt)
    return [o.hit.summary.id for o in gate_hits(hits, asked, {}, GATE, 3, rarity) if o.is_shown]


def test_a_rare_name_in_a_title_is_enough_even_where_little_else_is_covered():
    asked = "The new loop in parse_manifest reads each line twice, and the upload to staging is slow now"
    named = make_hit(1, 0.2, coverage=0.1, title="parse_manifest reads one line at a time")
    assert shown_with(rarity_of(), asked, make_hit(2, 9.0, title="Moved the kettle"), named) == [1]
    common = rarity_of(parse_manifest=0.5, pars=0.4, manifest=0.4)
    assert shown_with(common, asked, make_hit(2, 9.0, title="Moved the kettle"), named) == []


def test_a_paste_of_many_names_is_about_none_of_them():
    names = " ".join(f"field_{chr(97 + i)}x" for i in range(20))
    hit = make_hit(1, 9.0, title="Renamed field_cx to field_zz, told by the reader")
    assert shown_with(rarity_of(), f"the reader printed {names}", hit) == []
    assert shown_with(rarity_of(), "the reader printed field_cx", hit) == [1]


def test_common_words_alone_do_not_make_a_memory_one_about_the_same():
    common = rarity_of(fix=0.5, test=0.4, open=1.5, address=4.5, comment=4.0, run=0.5)
    asked = "can you address the open comments and fix the tests"
    hit = make_hit(1, 9.0, title="Fixed the tests that run with an open file")
    assert shown_with(common, asked, hit) == []


def test_a_question_about_the_past_is_answered_in_other_words():
    hit = make_hit(
        1,
        9.0,
        title="`decode` unpacked three names",
        body="Asked: why does login answer 500 for a token?",
    )
    assert shown_with(
        rarity_of(), "login answers 500 for garbage. What was it last time?", hit
    ) == [1]
    assert shown_with(rarity_of(), "login answers 500 for garbage in the new browser", hit) == []


def test_a_whole_session_is_not_shown_with_a_prompt():
    asked = "where do the sessions live"
    assert shown_with(rarity_of(), asked, make_hit(1, 9.0, kind=Kind.SESSION)) == []
    assert shown_with(rarity_of(), asked, make_hit(1, 9.0, kind=Kind.DISCOVERY)) == [1]


def told_by(titles, prompt, *hits):
    """The ids of what is told with a prompt, where these titles say how rare words are."""
    asked = prompt_gate.read_prompt(prompt)
    asked = replace(asked, evidence=PromptEvidence.read(asked.text, CountedTitles.count(titles)))
    offers = gate_hits(hits, asked, {}, GATE, 3, rarity_of())
    return [one.hit.summary.id for one in offers if one.is_shown]


THOUGHTS = (
    "I am thinking about the whole thing again, and whether the sharding of invoices by tenant is worth it,"
    " given how slow reports have become since spring and how few people ask for them at all"
)


def test_a_statement_that_shares_rare_words_with_a_prompt_is_evidence_however_little_is_covered():
    said = {"title": "Sharding of invoices goes by tenant", "kind": Kind.DECISION}
    hits = [make_hit(1, 9.0, coverage=0.1, title="Moved the kettle"), make_hit(2, 0.2, coverage=0.1, **said)]  # fmt: skip
    assert told_by([said["title"]], THOUGHTS, *hits) == [2]
    common = [f"Sharding of invoices, part {n}, of a tenant" for n in range(30)]
    assert told_by(common, THOUGHTS, *hits) == []
    turn = make_hit(2, 0.2, coverage=0.1, title=said["title"], kind=Kind.CHANGE)
    assert told_by([said["title"]], THOUGHTS, turn) == []


def test_a_statement_whose_title_was_cut_is_read_whole():
    title, body = "Everything that belongs to one customer…", "Everything that belongs to one customer: sharding of invoices by tenant"  # fmt: skip
    hit = make_hit(1, 0.2, coverage=0.1, title=title, body=body, kind=Kind.FACT)
    assert told_by([title], THOUGHTS, hit) == [1]


def test_of_what_is_evident_the_rarest_comes_first_and_three_at_most():
    asked = "sharding of invoices by tenant for archived ledgers and refunds"
    titles = [
        "Sharding of invoices is by tenant", "Sharding of archived invoices and ledgers is by tenant",
        "Refunds of archived ledgers are never sharded", "Sharding of refunds for archived invoices waits",
    ]  # fmt: skip
    hits = [make_hit(n, 9.0, title=title, kind=Kind.FACT) for n, title in enumerate(titles, 1)]
    shown = told_by(titles, asked, *hits)
    assert shown[0] == 2
    assert len(shown) == 3


ERROR = "ConnectionResetError: peer closed the ledger socket early"
TRACE = "\n".join(
    ["Here is what I get, please help.", "It began today.", "Traceback (most recent call last):"]
    + [
        f'  File "app/module_{n}.py", line {n}, in handle\n    return call_{n}(x)'
        for n in range(60)
    ]
    + [ERROR, "What now?", "I have no idea."]
)


def test_a_message_in_a_prompt_that_a_memory_has_as_its_error_gets_its_fix():
    asked = prompt_gate.read_prompt("Why did the ledger say that the balance is 130, expected 70?")
    fix = make_hit(1, 5.0, coverage=0.1, title="Fixed: The test fails", kind=Kind.FIX,
                   body="Error: AssertionError: balance is 130, expected 70\nFix: changed a.py")  # fmt: skip
    other = make_hit(2, 5.0, coverage=0.1, title="Fixed: The test fails", kind=Kind.FIX,
                     body="Error: AssertionError: balance is 7, expected 70\nFix: changed b.py")  # fmt: skip
    assert injected_ids([fix, other], asked=asked) == [1]


@every_row("prompt", [ERROR, f"I get this again:\n{ERROR}", TRACE])
def test_an_error_that_a_memory_has_word_for_word_gets_its_fix_however_little_else_fits(prompt):
    asked = prompt_gate.read_prompt(prompt)
    assert "peer closed the ledger" in asked.text
    failure = make_hit(1, 9.0, coverage=0.1, title=f"{ERROR} (app/a.py)", kind=Kind.FAILURE)
    fix = make_hit(2, 5.0, coverage=0.1, title=f"Fixed: {ERROR} (app/a.py)", kind=Kind.FIX)
    other = make_hit(3, 4.0, coverage=0.1, title="Fixed: ValueError: no such ledger", kind=Kind.FIX)
    assert injected_ids([failure, fix, other], asked=asked)[0] == 2
    assert 3 not in injected_ids([failure, fix, other], asked=asked)
    assert injected_ids([fix], {2: "seen"}, asked=asked) == []
