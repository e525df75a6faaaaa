"""Rules that are kept: told once when they are about to be broken, refused where the user wants it; a real daemon and hook."""

import itertools
import json

import anyio
import pytest
from mcp import Client

from memd.injection import hook_watch
from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_authority import command, in_agents_shell
from tests.e2e.test_judging import Asking, stdio_proxy

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("m"))
    it.start()
    yield it
    it.stop()


class Project:
    """A project of its own in the vault, and one session in it."""

    def __init__(self, daemon, directory):
        self.daemon, self.directory = daemon, directory
        self.session = ""
        (directory / ".git").mkdir()

    def say(self, rule, *options):
        """The user's rule; its number."""
        told = command(self.daemon, "remember", rule, "--kind", "instruction", "--project", str(self.directory), *options)  # fmt: skip
        return int(told.split()[0].removeprefix("#"))

    def begin(self, *, is_watched=True):
        """Start a session, and wait until its hooks know what to ask about."""
        self.session = f"s{next(_numbers)}"
        self.hook("SessionStart", source="startup")
        if not is_watched:
            return self
        watch = hook_watch.find_watch(self.daemon.paths.socket, self.session)
        self.daemon.wait_for(lambda: hook_watch._read(watch))
        return self

    def hook(self, name, **payload):
        whole = {"hook_event_name": name, "session_id": self.session, "cwd": str(self.directory), **payload}  # fmt: skip
        done = self.daemon.run("hook", name, stdin=json.dumps(whole).encode())
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def run(self, line, *, done=True):
        return self._call("Bash", {"command": line}, done=done)

    def edit(self, path, new="b", *, done=True):
        file = str(self.directory / path)
        return self._call(
            "Edit", {"file_path": file, "old_string": "a", "new_string": new}, done=done
        )

    def _call(self, tool, given, *, done):
        shown = self.hook("PreToolUse", tool_name=tool, tool_input=given, tool_use_id="t")
        if done and "deny" not in str(shown):
            self.hook(
                "PostToolUse",
                tool_name=tool,
                tool_input=given,
                tool_use_id=f"t{next(_numbers)}",
                tool_response={},
            )
        return shown and shown["hookSpecificOutput"]

    def end(self, **more):
        return self.hook(
            "Stop",
            **{
                "stop_hook_active": False,
                "last_assistant_message": f"Done {next(_numbers)}.",
                **more,
            },
        )


@pytest.fixture
def project(daemon, tmp_path):
    return Project(daemon, tmp_path)


def test_a_command_that_breaks_a_rule_is_told_once_in_a_session(project):
    number = project.say("Never run `git push --force`.")
    project.begin()
    assert project.run("git push") is None
    assert project.run('echo "never git push --force"') is None
    told = project.run("cd sub && git -C x push -f origin main")
    assert f"#{number}" in told["additionalContext"]
    assert "Never run" in told["additionalContext"]
    assert "permissionDecision" not in told
    assert project.run("git push --force") is None
    assert project.begin().run("git push --force") is not None


def test_a_typed_rule_that_the_next_prompt_takes_back_is_held_against_no_call(project):
    project.begin(is_watched=False)
    for said in (
        "Never touch `logs/`.",
        "hm no, forget that",
        "Never touch `secrets/`.",
        "thanks, go on",
    ):
        project.hook("UserPromptSubmit", prompt=said, prompt_id=f"p{next(_numbers)}")
        project.end()
    listed = lambda: command(project.daemon, "list", "--project", str(project.directory))  # noqa: E731
    project.daemon.wait_for(lambda: "secrets/" in listed() and "logs/" in listed())
    project.begin()
    assert "secrets/" in project.edit("secrets/key.txt")["additionalContext"]
    assert project.edit("logs/old.txt") is None


def test_what_the_user_enforces_is_refused_each_time_until_he_takes_it_back(project):
    number = project.say("Don't touch `migrations/`.")
    assert "enforced now" in command(project.daemon, "enforce", str(number))
    project.begin()
    for _ in range(2):
        refused = project.edit("db/migrations/001.sql")
        assert refused["permissionDecision"] == "deny"
        assert f"#{number}" in refused["permissionDecisionReason"]
    assert project.run("rm db/migrations/001.sql")["permissionDecision"] == "deny"
    assert project.edit("src/migrations.py") is None
    assert "told now" in command(project.daemon, "enforce", f"#{number}", "--off")
    assert project.edit("migrations/2.sql") is None
    assert "additionalContext" in project.begin().edit("migrations/2.sql")


def test_a_turn_with_an_edit_ends_after_the_command_that_the_rule_names(project):
    project.say("Run `make check` before you say that you are done.")
    project.begin(is_watched=False)
    assert project.end() is None
    project.edit("a.py")
    project.run("make check")
    assert project.end() is None
    project.edit("a.py")
    assert "`make check` was not run" in project.end()["reason"]
    assert project.end(stop_hook_active=True) is None
    assert project.end() is None


def test_an_enforced_command_is_asked_for_at_each_end_but_never_twice_for_one(project):
    number = project.say("Run `make check` before finishing.")
    command(project.daemon, "enforce", str(number))
    project.begin(is_watched=False)
    project.edit("a.py")
    for _ in range(2):
        assert project.end()["decision"] == "block"
        assert project.end(stop_hook_active=True) is None
    project.run("cd sub && make check -j4")
    assert project.end() is None


def ask_as_agent(project, work):
    """What an agent in the project gets from memd's tools."""

    async def connect():
        proxy = stdio_proxy(project.daemon).model_copy(update={"cwd": str(project.directory)})
        async with Client(proxy, mode="auto") as client:
            return await work(Asking(client))

    return anyio.run(connect)


def test_a_check_that_an_agent_gives_acts_only_once_the_user_kept_it(project):
    project.say("Never run `make deploy`.")

    async def note(ask):
        said = {"text": "The lock file is left alone.", "kind": "instruction"}
        noted = await ask("mem_remember", **said, check="never edit `uv.lock`")
        refused = await ask.refused("mem_remember", **said, check="be quick")
        return noted["id"], refused, (await ask("mem_why", id=noted["id"]))["checks"]

    number, refused, checks = ask_as_agent(project, note)
    assert "none of the forms" in refused
    assert checks == ["never edit `uv.lock`: acts once the user keeps this memory"]
    project.begin()
    assert project.edit("uv.lock") is None
    assert b"waits for you" in project.daemon.run("enforce", str(number)).stderr
    command(project.daemon, "review", "--keep", str(number))
    watch = hook_watch.find_watch(project.daemon.paths.socket, project.session)
    project.daemon.wait_for(lambda: "uv.lock" in hook_watch._read(watch))
    assert "uv.lock" in project.edit("uv.lock")["additionalContext"]
    assert "told when it is about to be broken" in command(project.daemon, "why", str(number))


def test_only_the_user_enforces(project):
    number = project.say("Never use `npm`, use `pnpm`.")
    refused = in_agents_shell(project.daemon, "enforce", str(number))
    assert refused.returncode == 1
    assert b"memd enforce" in refused.stderr
    project.begin()
    assert "additionalContext" in project.run("npm i lodash")


def test_a_rule_that_is_replaced_or_forgotten_is_told_no_more(project):
    number = project.say("Never run `make deploy`.", "--topic-key", "deploys")
    project.say("`make deploy` is fine, never `make ship`.", "--topic-key", "deploys")
    project.begin()
    assert project.run("make deploy") is None
    assert "holds no longer" in project.daemon.run("enforce", str(number)).stderr.decode()


def test_a_rule_that_a_later_one_replaces_in_part_is_neither_told_nor_refused_nor_called_current(
    daemon, project
):
    old = project.say("Always run `python3 -m unittest -q` before you commit")
    command(daemon, "enforce", str(old))
    project.begin().edit("a.py")
    assert f"#{old} " in str(project.run("git commit -m x"))
    new = project.say("From now on run `make test` before you commit instead of `python3 -m unittest -q`.")  # fmt: skip
    project.begin().edit("a.py")
    assert project.run("make test && git commit -m x") is None
    project.edit("a.py")
    told = str(project.run("git commit -m y"))
    assert f"#{new} " in told
    assert f"#{old} " not in told
    listed = command(daemon, "enforce", "--project", str(project.directory))
    assert f"#{new} " in listed
    assert f"#{old} " not in listed
    why = command(daemon, "why", str(old))
    assert f"#{new} says what holds of it since" in why or f"superseded by #{new}" in why
    assert "Checks" not in why


def test_what_was_told_is_listed_and_shown_in_why(project):
    number = project.say("Never use `--no-verify`.")
    project.begin()
    assert project.run("git commit -nm x") is not None
    told = json.loads(command(project.daemon, "injected", project.session, "--json"))
    assert [(one["id"], one["moment"]) for one in told["injections"]][-1] == (number, "rule")
    assert (
        command(project.daemon, "injected", project.session).count(f"#{number} ") == 2
    )  # the start, and the call
    assert "check" in command(project.daemon, "why", str(number))
    listed = command(project.daemon, "enforce", "--project", str(project.directory))
    assert f"#{number}" in listed
