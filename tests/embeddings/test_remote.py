import anyio
import numpy as np
import pytest

from memd.embeddings import providers, remote
from memd.embeddings.batching import REQUEST_S, AdaptiveBatchSize
from memd.embeddings.remote import RemoteEmbedder, make_remote_embedder
from memd.errors import ConfigError, EngineAbsent, EngineFailed
from tests.fakes.ollama import FAULTS, Model

HARMFUL = sorted(set(FAULTS) - {"hang", "hang embed", "reversed"})


async def until(condition):
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # the room has no bell for tests
            await anyio.sleep(0.002)


@pytest.fixture
def made(server, clock):
    def make(environ=None, **settings):
        return make_remote_embedder(server.engines(**settings), environ or {}, clock, lambda: 0.5)

    return make


@pytest.fixture
def running(made):
    """A context in which the room runs, and the model is ready if there is one."""

    class Running:
        def __init__(self, **settings):
            self.learned = made(**settings)

        async def __aenter__(self):
            self.group = anyio.create_task_group()
            await self.group.__aenter__()
            self.group.start_soon(self.learned.run)
            await until(lambda: self.learned.status()["state"] != "starting")
            return self.learned

        async def __aexit__(self, *error):
            self.group.cancel_scope.cancel()
            return await self.group.__aexit__(*error)

    return Running


def test_no_model_is_made_if_the_settings_want_none(made):
    assert made(embedder="hashing") is None


def test_another_machine_is_refused_by_the_name_of_the_setting(made):
    with pytest.raises(ConfigError, match=r"engines\.remote"):
        made(url="http://models.example")
    assert isinstance(made(url="http://models.example", remote=True), RemoteEmbedder)


async def test_the_worker_finds_the_model_and_reports_when_it_is_ready(running):
    rung = []
    async with running(query_s=10) as learned:
        learned.on_ready(lambda: rung.append(learned.current.name))
        assert learned.is_ready
        assert learned.why_not == ""
        assert learned.current.name == f"ollama/nomic-embed-text/1/768/{Model().digest[:12]}"
        learned.nudge()
        await until(lambda: learned._checked_at > 0)
        assert rung == []


async def test_it_finds_by_meaning_what_shares_no_word(running):
    async with running(query_s=10) as learned:
        rows = await learned.documents(["the automobile is red", "tax returns are due"])
        question = await learned.query("which car")
        assert rows[0] @ question > rows[1] @ question + 0.1


async def test_the_same_question_again_costs_nothing(server, running):
    async with running(query_s=10) as learned:
        first = await learned.query("where are sessions kept")
        asked = len(server.requests)
        assert (await learned.query("where are sessions kept") == first).all()
        assert len(server.requests) == asked


async def test_only_so_many_questions_are_remembered(running, monkeypatch):
    monkeypatch.setattr(remote, "_CACHED_QUERIES_MAX", 2)
    async with running(query_s=10) as learned:
        for text in "abc":
            await learned.query(text)
        assert [text for _, text in learned._cache] == ["b", "c"]


async def test_a_blank_text_is_zeros_without_a_request(server, running):
    async with running(query_s=10) as learned:
        asked = len(server.requests)
        assert not (await learned.query(" \n")).any()
        assert not (await learned.documents(["", "\t"])).any()
        assert len(server.requests) == asked


async def test_a_missing_model_is_reported_and_found_once_it_is_pulled(server, running):
    server.models.clear()
    async with running(query_s=10) as learned:
        status = learned.status()
        assert (status["state"], learned.is_ready) == ("no model", False)
        assert "`ollama pull nomic-embed-text`" in learned.why_not
        assert status["trouble"].startswith("engines.embedder is ollama, but Ollama does not have")
        server.pull()
        await until(lambda: learned.is_ready)
        assert learned.status()["trouble"] is None


async def test_with_auto_a_missing_model_is_no_trouble(server, running):
    server.kill()
    async with running(embedder="auto") as learned:
        assert learned.status()["state"] == "absent"
        assert learned.status()["trouble"] is None
        with pytest.raises(EngineFailed, match="start Ollama"):
            await learned.query("what")


async def test_a_server_that_was_killed_is_found_again_and_callbacks_run(server, running):
    rung = []
    async with running(query_s=10) as learned:
        learned.on_ready(lambda: rung.append(1))
        space = learned.current
        server.kill()
        with pytest.raises(EngineAbsent):
            await learned.query("what")
        with pytest.raises(EngineFailed, match="nothing answers"):
            await learned.documents(["what"])
        assert learned.current == space
        server.start()
        await until(lambda: learned.is_ready)
        assert rung == [1]
        assert len(await learned.query("what")) == 768


@pytest.mark.parametrize("fault", HARMFUL)
async def test_whatever_goes_wrong_is_an_engine_failed_and_heals(
    server, running, monkeypatch, fault
):
    monkeypatch.setattr(providers, "REPLY_BYTES", 2_000_000)
    async with running(query_s=10) as learned:
        server.fault = fault
        with pytest.raises(EngineFailed):
            await learned.query("what")
        assert not learned.is_ready
        server.fault = None
        learned.nudge()
        await until(lambda: learned.is_ready)
        assert np.linalg.norm(await learned.query("what")) == pytest.approx(1, abs=1e-5)


async def test_a_hanging_server_costs_two_deadlines_and_no_more(server, running):
    async with running(query_s=0.1) as learned:
        server.fault = "hang"
        for late in (1, 2):
            with pytest.raises(EngineFailed, match=r"within 0\.1 s"):
                await learned.query("what")
            assert learned.status()["timeouts"] == late
        for _ in range(50):
            with pytest.raises(EngineFailed):
                await learned.query("what")
        assert learned.status()["timeouts"] == 2
        assert learned.status()["state"] == "failing"


async def test_a_late_answer_makes_the_worker_load_the_model(server, running):
    async with running(query_s=0.05) as learned:
        server.delay_s = 0.3
        with pytest.raises(EngineFailed):
            await learned.query("what")
        server.delay_s = 0.0
        await until(lambda: not learned._is_doubted)
        assert learned.is_ready
        assert "search_document: " in server.texts[-1]


async def test_whoever_gives_up_early_on_a_late_answer_is_counted_and_leaves_no_task(
    server, running, monkeypatch
):
    monkeypatch.setattr(remote, "_LATE_SHARE", 0.001)
    async with running(query_s=10) as learned:
        server.fault = "hang"
        for _ in range(2):
            with anyio.move_on_after(0.05):
                await learned.query("what")
        assert learned.status()["state"] == "failing"
        assert learned.status()["timeouts"] == 2
        assert learned._open_queries == 0
        assert learned._slots.borrowed_tokens == 0


async def test_a_call_cancelled_at_once_does_not_count_against_the_model(server, running):
    async with running(query_s=10) as learned:
        server.fault = "hang embed"
        with anyio.move_on_after(0.02):
            await learned.query("what")
        assert learned.is_ready
        assert learned.status()["timeouts"] == 0


async def test_a_question_does_not_wait_for_a_batch(server, running):
    server.delay_s = 0.02
    async with running(query_s=5) as learned, anyio.create_task_group() as group:
        group.start_soon(learned.documents, [f"text {number}" for number in range(64)])
        await until(lambda: learned._batches.borrowed_tokens == 1)
        for number in range(5):
            await learned.query(f"question {number}")
        # All five are answered, and it is under way still.
        assert learned._batches.borrowed_tokens == 1


async def test_a_batch_goes_in_pieces_and_comes_back_in_order(server, running):
    texts = [f"text number {number}" for number in range(70)]
    async with running(query_s=10) as learned:
        rows = await learned.documents(texts)
        assert np.allclose(rows, Model().vectors(texts), atol=1e-5)
        sizes = [len(body["input"]) for body in server.calls("/api/embed")]
        assert max(sizes) <= 32
        assert len(sizes) > 3


async def test_only_so_many_requests_are_under_way_at_a_time(server, running):
    server.delay_s = 0.3
    async with running(query_s=5, concurrency=1) as learned, anyio.create_task_group() as group:
        group.start_soon(learned.documents, ["one", "two"])
        group.start_soon(learned.query, "three")
        await until(lambda: learned._slots.borrowed_tokens == 1)
        assert learned._slots.total_tokens == 1


async def test_another_digest_is_another_space_and_callbacks_run(server, running):
    rung = []
    async with running(query_s=10) as learned:
        learned.on_ready(lambda: rung.append(learned.current.digest))
        before = await learned.query("what")
        server.pull(seed=2)
        learned.nudge()
        await until(lambda: learned.current.digest == Model(seed=2).digest[:12])
        assert rung == [Model(seed=2).digest[:12]]
        assert abs(before @ await learned.query("what")) < 0.5


async def test_vectors_of_a_model_that_was_replaced_meanwhile_are_not_handed_on(server, running):
    async with running(query_s=10) as learned:
        server.pull(seed=2)
        with pytest.raises(EngineFailed, match="was replaced while it was asked"):
            await learned.documents(["what"])
        await until(lambda: learned.is_ready)
        assert learned.current.digest == Model(seed=2).digest[:12]


async def test_a_server_whose_first_vectors_are_not_as_long_as_it_says_is_not_used(server, running):
    server.fault = "wrong dimension"
    async with running(query_s=10) as learned:
        assert (learned.current, learned.status()["state"]) == (None, "failing")
        assert "767 values came, not of 768" in learned.why_not


async def test_vectors_are_cut_to_the_dimensions_of_the_settings(running):
    async with running(dimensions=256) as learned:
        assert learned.current.dimensions == 256
        assert (await learned.documents(["what"])).shape == (1, 256)
    async with running(embedder="openai", dimensions=256) as learned:
        assert learned.current.name == "openai/nomic-embed-text/1/256"
        assert (await learned.query("what")).shape == (256,)


async def test_the_status_counts_and_tells_since_when(server, running, clock):
    async with running(query_s=10) as learned:
        await learned.query("what")
        status = learned.status()
        assert (status["asked"], status["failed"], status["timeouts"]) == (1, 0, 0)
        assert status["p50_ms"] > 0
        assert (status["since"], status["provider"]) == (clock(), "ollama")
        clock.advance(s=60)
        server.kill()
        with pytest.raises(EngineFailed):
            await learned.query("why")
        assert learned.status()["since"] == clock()
        assert learned.status()["failed"] == 1


async def test_the_key_of_the_environment_is_sent_by_openai_alone(server, made):
    environ = {"KEY": "planted"}
    for kind, sent in [("openai", "Bearer planted"), ("ollama", None)]:
        learned = made(environ, embedder=kind, api_key_env="KEY")
        await learned.check()
        await learned._choice.close()
        assert server.headers[-1].get("authorization") == sent


async def test_a_worker_that_ended_closes_its_connections_and_can_run_again(running):
    context = running()
    async with context as learned:
        await learned.query("what")
    with pytest.raises(EngineFailed, match="about to leave"):
        await learned._choice.describe()
    async with context:
        learned.nudge()
        await until(lambda: learned._checked_at > 0)
        assert learned.is_ready


def test_it_begins_with_a_few():
    assert AdaptiveBatchSize().size(32) == 4
    assert AdaptiveBatchSize().size(2) == 2


def test_a_slow_machine_gets_one_text_at_a_time():
    assert AdaptiveBatchSize().record_request(4, 2.0).size(32) == 1


def test_a_quick_one_gets_ever_more_up_to_the_limit():
    pace, sizes = AdaptiveBatchSize(), []
    for _ in range(6):
        sizes.append(pace.size(32))
        pace = pace.record_request(sizes[-1], 0.0005 * sizes[-1])
    assert sizes == [4, 8, 16, 32, 32, 32]


def test_a_request_takes_about_as_long_as_a_question_can_bear():
    pace = AdaptiveBatchSize().record_request(4, 4 * 0.004).record_request(5, 5 * 0.004)
    assert pace.size(32) * 0.004 <= REQUEST_S


def test_no_time_at_all_is_not_divided_by():
    assert AdaptiveBatchSize().record_request(4, 0.0).size(64) == 8
