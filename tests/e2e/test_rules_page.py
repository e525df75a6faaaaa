"""The examples of docs/rules.md, typed to a real daemon or remembered, and the calls that break them."""

import pathlib
import re

import pytest

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_rules import Project

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "rules.md").read_text("utf-8")
TYPED, _, WRITTEN = PAGE.partition("Without these words")
_EXAMPLE = re.compile(r"(?<!\*)\*(?=\S)([^*]+\.)\*(?!\*)")
BREACHES = {
    "Never run `git push --force`.": "git push -f origin x",
    "From now on use pnpm, not npm.": "npm ci",
    "Always run `pytest` with `-n 2`.": "pytest tests",
    "Always run `make check` before you say that you are done.": "",
    "Never touch `migrations/`.": "edit migrations/1.sql",
    "From now on don't edit `gen/`.": "edit gen/a.go",
    "Never use `console.log`.": "write console.log(a)",
    "Use pnpm, not npm.": "npm install left-pad",
    "Don't touch `vendor/`.": "edit vendor/x.py",
    "Run `make check` before you commit.": "git commit -m x",
    "Niemals `--no-verify` verwenden.": "git commit --no-verify",
    "Не трогай `gen/`.": "edit gen/a.go",
}
"""Example → what breaks it; nothing: the end of a turn."""
OF_PAGE = [(text, text in TYPED) for text in _EXAMPLE.findall(PAGE)]


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """A project for each example, in which the rule was said."""
    daemon = RealDaemon(tmp_path_factory.mktemp("m")).start()
    places = {}
    for number, (text, is_typed) in enumerate(OF_PAGE):
        places[text] = project = Project(daemon, tmp_path_factory.mktemp(f"p{number}"))
        if not is_typed:
            project.say(text)
            continue
        project.begin(is_watched=False)
        project.hook("UserPromptSubmit", prompt=text)
        project.end(last_assistant_message="Okay.")
        project.hook("SessionEnd", reason="exit")
    daemon.settle()
    yield places
    daemon.stop()


def test_each_example_has_a_call_that_breaks_it():
    assert dict(OF_PAGE).keys() == BREACHES.keys()
    assert {is_typed for _, is_typed in OF_PAGE} == {True, False}


@pytest.mark.parametrize(("text", "breach"), BREACHES.items(), ids=list(BREACHES))
def test_what_breaks_an_example_of_the_page_is_told(projects, text, breach):
    project = projects[text].begin(is_watched=bool(breach))
    what, _, rest = breach.partition(" ")
    if not breach:
        project.edit("a.py")
        told = project.end()["reason"]
    elif what == "edit":
        told = project.edit(rest)["additionalContext"]
    elif what == "write":
        told = project.edit("a.js", rest)["additionalContext"]
    else:
        project.edit("a.py")
        told = project.run(breach)["additionalContext"]
    assert text.removeprefix("From now on ").rstrip(".")[1:] in told
