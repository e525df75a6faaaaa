"""What the control calls say of a place, and what they switch; over the real listener."""

import pytest

from memd.capture.project import ProjectOverrides
from memd.models import SessionRef
from memd.store import projects


@pytest.fixture
def shop(server, tmp_path):
    """A directory with a repository and one memory; its path."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    server.remember("A memory", project=str(tmp_path / "shop"))
    return str(tmp_path / "shop")


def session(server, key, project):
    def work(tx):
        number = projects.ensure_project(tx, project, project, "", 1)
        projects.ensure_session(tx, SessionRef("claude-code", key), number, 1)

    server.db.write_now(work)


def effective(server, key, session_key=None):
    found = server.db.read_now(lambda tx: projects.effective_switch(tx, key, session_key))
    return found.captures, found.recalls


async def test_a_project_is_found_by_directory_name_and_key(say, shop):
    for asked in ({"directory": shop}, {"project": shop}):
        reply = await say("project", **asked)
        assert (reply["key"], reply["is_known"], reply["memories"]) == (shop, True, 1)
        assert reply["reason"] == "the git repository's top level"
        assert (reply["aliases"], reply["before"]) == ([], None)
        assert reply["switch"]["reason"] == "on everywhere"
    assert (await say("project", project="global")).startswith("project: there is no")
    assert "comes from no directory" in await say("project")


async def test_an_unknown_directory_is_described_too(say, tmp_path):
    reply = await say("project", directory=str(tmp_path / "new"))
    assert (reply["name"], reply["is_known"], reply["sessions"]) == ("new", False, 0)
    assert reply["last_event_at"] is None


async def test_the_project_that_projects_toml_took_a_directory_from_is_named(
    server, say, shop, tmp_path
):
    file = tmp_path / "projects.toml"
    file.write_text('[projects]\n"~/shop" = "mine"')
    server.app = server.app.__class__(
        **{name: getattr(server.app, name) for name in server.app.__dataclass_fields__}
        | {"overrides": ProjectOverrides(str(file), str(tmp_path))}
    )
    reply = await say("project", directory=shop)
    assert (reply["key"], reply["before"], reply["memories"]) == ("mine", shop, 0)
    await say("remember", text="Told by hand.", directory=shop)
    assert (await say("project", directory=shop))["memories"] == 1
    assert (await say("project", project="mine"))["memories"] == 1
    merged = await say("project/merge", project=reply["before"], into="mine", dry_run=False)
    assert merged["aliases"] == [shop]
    reply = await say("project", directory=shop)
    assert (reply["before"], reply["memories"]) == (None, 2)
    again = await say("project/merge", project=shop, into="mine", dry_run=False)
    assert "is that project already" in again


async def test_merged_projects_are_found_by_either_name(server, say, tmp_path):
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    for key in (one, other):
        server.remember(f"In {key}", project=key)
    plan = await say("project/merge", project=one, into=other)
    assert (plan["is_dry_run"], plan["memories"]) == (True, 1)
    done = await say("project/merge", project=one, into=other, dry_run=False)
    assert (done["is_dry_run"], done["aliases"]) == (False, [one])
    assert server.worker.settled
    reply = await say("project", directory=one)
    assert (reply["key"], reply["aliases"], reply["memories"]) == (other, [one], 2)
    assert reply["reason"].endswith(f"{one} was merged into it")
    hits = (await say("search", query="in", directory=one))["hits"]
    assert len(hits) == 2


async def test_a_name_that_is_none_or_several_is_an_error(server, say):
    for key, name in (("/a/shop", "shop"), ("/b/shop", "shop"), ("/c", "c")):
        server.db.write_now(lambda tx, k=key, n=name: projects.ensure_project(tx, k, n, "", 1))
    for params in ({"project": "shop", "into": "c"}, {"project": "c", "into": "shop"}):
        assert await say("project/merge", **params) == (
            "project: 2 are called 'shop'; say which: /a/shop, /b/shop"
        )
    assert await say("project/rename", project="shoe", name="x") == (
        "project: there is no 'shoe'; there is shop, c"
    )
    assert "that project already" in await say("project/merge", project="c", into="/c")
    assert (await say("project/rename", project="/a/shop", name="money"))["name"] == "money"
    assert (await say("project", project="shop"))["key"] == "/b/shop"


async def test_every_project_is_listed_with_how_much_there_is(server, say, shop):
    session(server, "s1", shop)
    (one,) = (await say("projects"))["projects"]
    assert (one["key"], one["sessions"], one["memories"], one["events"]) == (shop, 1, 1, 0)
    assert (one["last_event_at"], one["aliases"]) == (1, [])
    assert one["switch"]["captures"]


async def test_the_project_of_a_directory_is_switched_before_anything_is_known_of_it(
    server, say, tmp_path
):
    new = str(tmp_path / "new")
    reply = await say("switch", state="off", directory=new)
    assert reply["here"]["switch"]["reason"] == "switched off for project new"
    assert effective(server, new) == (False, False)
    (row,) = (await say("switch"))["switches"]
    assert (row["scope"], row["target"], row["name"]) == ("project", new, "new")
    for state, holds in (
        ("capture-only", (True, False)),
        ("recall-only", (False, True)),
        ("on", (True, True)),
    ):
        await say("switch", state=state, project=new)
        assert effective(server, new) == holds
    assert (await say("switch"))["switches"] == []


async def test_a_session_is_switched_by_the_beginning_of_its_id(server, say, shop):
    session(server, "abcdef", shop)
    reply = await say("switch", state="off", session="abc")
    assert reply["session"] == "abcdef"
    assert effective(server, shop, "abcdef") == (False, False)
    assert effective(server, shop, "other") == (True, True)
    await say("switch", state="on", session="abc")
    assert (await say("switch"))["switches"] == []
    await say("switch", state="off", directory=shop)
    await say("switch", state="on", session="abc")
    assert effective(server, shop, "abcdef") == (True, True)
    assert effective(server, shop, "other") == (False, False)


async def test_a_session_that_has_not_begun_is_switched_by_its_whole_id(server, say):
    key = "0f0f0f0f-0000-4000-8000-0123456789ab"
    await say("switch", state="off", session=key)
    assert effective(server, "/anywhere", key) == (False, False)
    assert "there is no 'typo'" in await say("switch", state="off", session="typo")


async def test_searches_are_answered_where_memd_is_switched_off(say, shop):
    await say("switch", state="off", directory=shop)
    assert (await say("search", query="memory", directory=shop))["hits"]
    kept = await say("remember", text="Said by hand.", directory=shop)
    assert kept["outcome"] == "created"


async def test_status_describes_the_project_of_a_directory(say, shop):
    assert "here" not in await say("status")
    reply = (await say("status", directory=shop))["here"]
    assert (reply["key"], reply["is_known"]) == (shop, True)
    assert "memories" not in reply
