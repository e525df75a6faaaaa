"""Two memories that contradict each other: the greater authority stands first, and both say so."""

import pytest
from mcp import Client

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_authority import PLACE, command
from tests.e2e.test_judging import Asking, stdio_proxy

USERS = "Releases go out by Kamal to the machines in Falkenstein"
AGENTS = "We deploy with Fly, and whoever asks what we deploy with is told Fly"


def oppose(daemon):
    """Let a daemon know the user's pinned decision, #1, and an agent's, #2, which says otherwise in the words of the question."""
    daemon.start()
    command(daemon, "remember", USERS, "--kind", "decision", "--project", PLACE)
    command(daemon, "pin", "1")
    with daemon.client() as client:
        client.call(
            "memd/remember",
            {"text": AGENTS, "kind": "decision", "project": PLACE, "speaker": "agent"},
        )
    command(daemon, "judge", "2", "1", "contradicts", "--reason", "two places")
    daemon.settle()
    return daemon


@pytest.fixture(scope="module")
def opposed(tmp_path_factory):
    daemon = oppose(RealDaemon(tmp_path_factory.mktemp("m")))
    yield daemon
    daemon.stop()


async def ask(daemon, query, **arguments):
    server = stdio_proxy(daemon).model_copy(update={"cwd": PLACE})
    async with Client(server, mode="auto") as client:
        return (await Asking(client)("mem_search", query=query, **arguments))["hits"]


@pytest.mark.parametrize(
    "query", ["what do we deploy with", "Fly", "deploy Kamal Falkenstein machines"]
)
async def test_the_users_pinned_word_stands_before_an_agents_that_matches_better(opposed, query):
    first, then = await ask(opposed, query, explain=True)
    assert (first["id"], then["id"]) == (1, 2)
    assert first["contradiction"] == "contradicts the later #2 (agent)"
    assert then["contradiction"] == "contradicted by the earlier #1 (user, pinned)"
    assert (first["contradicted_by"], then["contradicted_by"]) == ([2], [1])
    assert first["score"] >= then["score"]


async def test_a_judgment_that_both_may_hold_ends_it(daemon):
    opposed = oppose(daemon)
    command(opposed, "judge", "2", "1", "compatible", "--reason", "two products")
    first, then = await ask(opposed, "what do we deploy with, Fly or Kamal", explain=True)
    assert "contradiction" not in {*first, *then}
    assert "authority" not in {*first["parts"], *then["parts"]}


@pytest.mark.parametrize("relation", ["contradicts", "supersedes"])
async def test_what_an_agent_judges_puts_no_doubt_on_the_users_word_but_why_tells_it(
    daemon, relation
):
    daemon.start()
    for text in ("Coupons are checked by the till", "Vouchers are checked by the cashier"):
        command(daemon, "remember", text, "--kind", "decision", "--project", PLACE)
    server = stdio_proxy(daemon).model_copy(update={"cwd": PLACE})
    async with Client(server, mode="auto") as client:
        judged = await Asking(client)(
            "mem_judge", id=2, other=1, relation=relation, reason="two ways"
        )
    assert judged["outcome"] == {"contradicts": "judged", "supersedes": "asked"}[relation]
    told = command(daemon, "context", "--project", PLACE)
    assert "Coupons are checked by the till" in told
    assert "contradict" not in told
    assert "contradicts" in command(daemon, "why", "1"), "as what somebody judged"
