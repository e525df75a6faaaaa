from memd.daemon.status import EmbedderTracker

HASHING = "hashing/words-ngrams/1/768"
SPACE = "ollama/nomic-embed-text/1/768/abc"
READY = {
    "provider": "ollama", "model": "nomic-embed-text", "space": SPACE, "state": "ready",
    "since": 5, "why_not": "", "asked": 3, "failed": 1, "timeouts": 1, "p50_ms": 12.5,
    "trouble": None,
}  # fmt: skip
ABSENT = READY | {"state": "absent", "why_not": "nothing answers: start Ollama", "space": None}


def test_without_a_model_hashing_leads_since_the_start():
    told = EmbedderTracker("hashing", HASHING, 1_000).told("", {}, {}, 2_000)
    assert (told.active, told.space, told.since, told.learned) == (
        "hashing",
        HASHING,
        1_000,
        None,
    )
    assert told.why == "the settings want no model"


def test_a_model_that_is_absent_is_the_reason_why_hashing_leads():
    told = EmbedderTracker("auto", HASHING, 0).told(
        HASHING, ABSENT, {"done": 0, "missing": 7}, 1
    )
    assert (told.active, told.why) == ("hashing", "nothing answers: start Ollama")
    assert (told.learned.state, told.learned.coverage, told.learned.missing) == (
        "absent",
        0.0,
        7,
    )


def test_while_its_space_is_filled_hashing_leads_and_that_is_said():
    told = EmbedderTracker("auto", HASHING, 0).told(
        HASHING, READY, {"done": 1_000, "missing": 3_000}, 1
    )
    assert told.active == "hashing"
    assert told.why == "nomic-embed-text answers, and 3,000 passages wait for their vectors"
    assert told.learned.coverage == 0.25


def test_once_the_learned_space_leads_its_provider_is_active_since_then():
    lead = EmbedderTracker("auto", HASHING, 0)
    lead.told(HASHING, READY, {"done": 1, "missing": 3}, 10)
    first = lead.told(SPACE, READY, {"done": 4, "missing": 0}, 20)
    later = lead.told(SPACE, READY, {"done": 4, "missing": 0}, 30)
    assert (first.active, first.space, first.why) == (
        "ollama",
        SPACE,
        "nomic-embed-text answers",
    )
    assert (first.since, later.since) == (20, 20)
    assert later.learned.coverage == 1.0


def test_a_model_that_leads_and_does_not_answer_is_told_with_who_answers_instead():
    told = EmbedderTracker("auto", HASHING, 0).told(SPACE, ABSENT, {"done": 4, "missing": 0}, 1)
    assert told.why == "nothing answers: start Ollama; hashing answers alone until then"
