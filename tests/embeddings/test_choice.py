"""`auto`: Ollama if it answers, else the local model if there is one, else none; changed at run time."""

from functools import partial

import anyio
import anyio.to_thread
import pytest

from memd.embeddings import remote
from memd.embeddings.remote import make_remote_embedder
from memd.errors import EngineFailed
from tests import tiny_model


async def until(condition):
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # the room has no bell for tests
            await anyio.sleep(0.005)


@pytest.fixture
def models(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def add(models, tmp_path):
    """Add a model, in a thread: the event loop of these tests lets nothing block."""
    return partial(anyio.to_thread.run_sync, tiny_model.add, models, tmp_path / "wheels")


@pytest.fixture
def running(server, models, clock):
    """A context in which the worker runs that looks for models."""

    class Running:
        def __init__(self, **settings):
            self.model = make_remote_embedder(
                server.engines(**{"query_s": 10.0} | settings), {}, clock, lambda: 0.5, str(models)
            )

        async def __aenter__(self):
            self.group = anyio.create_task_group()
            await self.group.__aenter__()
            self.group.start_soon(self.model.run)
            await until(lambda: self.model.status()["state"] != "starting")
            return self.model

        async def __aexit__(self, *error):
            self.group.cancel_scope.cancel()
            return await self.group.__aexit__(*error)

    return Running


async def becomes(model, provider):
    """Check again and again, as the worker does less often, until this provider's model answers."""

    async def is_there():
        await model.check()
        return model.is_ready and model.status()["provider"] == provider

    with anyio.fail_after(60):
        while not await is_there():  # noqa: ASYNC110  # the room has no bell for tests
            await anyio.sleep(0.005)


async def test_ollama_is_preferred_if_it_answers(running, add):
    await add()
    async with running(embedder="auto") as model:
        assert (model.is_ready, model.current.provider) == (True, "ollama")


async def test_without_ollama_the_local_model_answers(running, server, add):
    server.kill()
    added = await add()
    async with running(embedder="auto") as model:
        assert model.current.name == f"local/tiny/1/{tiny_model.DIMENSIONS}/{added.digest[:12]}"
        status = model.status()
        assert (status["provider"], status["model"], status["state"]) == ("local", "tiny", "ready")
        rows = await model.documents(["the daemon", "", "sqlite"])
        question = await model.query("the daemon")
        assert rows.shape == (3, tiny_model.DIMENSIONS)
        assert not rows[1].any()
        assert question @ rows[0] == pytest.approx(1, abs=1e-5)


async def test_without_both_the_status_says_what_would_help(running, server):
    server.kill()
    async with running(embedder="auto") as model:
        status = model.status()
        assert (status["provider"], status["state"]) == ("ollama", "absent")
        assert "start Ollama" in status["why_not"]
        assert "`memd model add`" in status["why_not"]
        assert status["trouble"] is None


async def test_the_settings_may_ask_for_the_local_model_alone(running, add):
    async with running(embedder="local") as model:
        assert model.status()["trouble"].startswith("engines.embedder is local, but no local model")
        assert "`memd model add`" in model.why_not
        await add()
        await becomes(model, "local")
        assert model.status()["trouble"] is None


async def test_settings_for_ollama_never_take_the_local_model(running, server, add):
    server.kill()
    await add()
    async with running(embedder="ollama") as model:
        assert (model.is_ready, model.current) == (False, None)


async def test_a_model_that_is_added_answers_without_a_restart_and_a_removed_one_is_forgotten(
    running, server, models, add
):
    server.kill()
    woken = []
    async with running(embedder="auto") as model:
        model.on_ready(lambda: woken.append(model.current and model.current.provider))
        await add()
        await becomes(model, "local")
        await anyio.to_thread.run_sync(tiny_model.remove, models)
        await model.check()
        assert (model.current, model.is_ready) == (None, False)
        assert woken == ["local", None]
        with pytest.raises(EngineFailed, match="start Ollama"):
            await model.query("the daemon")


async def test_ollama_takes_over_when_it_comes(running, server, add):
    server.kill()
    await add()
    async with running(embedder="auto") as model:
        assert model.current.provider == "local"
        server.start()
        await becomes(model, "ollama")


async def test_a_short_outage_of_ollama_does_not_change_the_space(running, server, add):
    await add()
    async with running(embedder="auto") as model:
        before = model.current
        server.kill()
        await model.check()
        assert (model.is_ready, model.current) == (False, before)
        server.start()
        await becomes(model, "ollama")


async def test_after_a_long_outage_the_local_model_takes_over(running, server, add, monkeypatch):
    monkeypatch.setattr(remote, "GRACE_S", 0.0)
    await add()
    async with running(embedder="auto") as model:
        server.kill()
        await becomes(model, "local")


async def test_a_server_that_hangs_is_failing_and_not_absent(running, server, monkeypatch):
    # Questions are told of a server that is there and does not answer, not of one that was never started.
    monkeypatch.setattr(remote, "PREFERRED_TIMEOUT_S", 0.05)
    server.fault = "hang"
    async with running(embedder="auto") as model:
        assert model.is_failing
        assert "does not answer" in model.why_not


async def test_a_server_that_hangs_does_not_keep_the_local_model_waiting(
    running, server, add, monkeypatch
):
    monkeypatch.setattr(remote, "PREFERRED_TIMEOUT_S", 0.05)
    server.fault = "hang"
    await add()
    async with running(embedder="auto") as model:
        assert model.current.provider == "local"


async def test_dimensions_of_the_settings_do_not_cut_the_local_model(running, server, add):
    server.kill()
    await add()
    async with running(embedder="auto", dimensions=8) as model:
        assert model.current.dimensions == tiny_model.DIMENSIONS


async def test_a_damaged_model_is_not_used_until_it_is_added_again(running, server, add):
    server.kill()
    path = tiny_model.weights_of(await add())
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    async with running(embedder="auto") as model:
        assert "SHA-256 differs; `memd model add` fetches it again" in model.why_not
        await model.check()  # which does not read the weights again
        assert model.status()["state"] in ("absent", "no model", "failing")
        await add()
        await becomes(model, "local")


async def test_a_local_model_is_made_ready_before_the_question(running, server, add):
    server.kill()
    await add()
    async with running(embedder="auto") as model:
        questions = model._chosen.provider._questions
        assert questions.pid is None
        model.warm()
        await until(lambda: questions.pid is not None)
