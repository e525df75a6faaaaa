import inspect
import re

from memd import errors
from memd.errors import BadRequest, Broken, MemdError, Unreachable, VaultError, VaultFull
from tests.tables import every_row

TREE = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MemdError)
]


@every_row("kind", TREE)
def test_every_error_speaks_even_when_nothing_was_said(kind):
    assert kind().message == kind.__doc__.strip()
    assert kind("because").message == "because"


def test_a_message_names_tools_to_an_agent_and_commands_to_a_person():
    error = BadRequest("unpin it first (mem_pin or `memd pin --off 3`); `memd doctor` says more")
    assert error.name_tools() == "unpin it first (mem_pin); `memd doctor` says more"
    assert error.name_commands() == "unpin it first (`memd pin --off 3`); `memd doctor` says more"


def test_blame_is_named():
    """Either the caller's fault or ours; there is no third branch."""
    assert all(issubclass(kind, (BadRequest, Broken)) for kind in TREE if kind is not MemdError)
    assert issubclass(VaultFull, VaultError)


def test_the_drawing_shows_the_tree_as_it_is():
    drawn = re.findall(r"^ +[│├└─ ]*(\w+)(?:  +|$)", errors.__doc__, re.MULTILINE)
    assert sorted(drawn) == sorted(kind.__name__ for kind in TREE)


def test_an_unreachable_daemon_is_reported_with_what_to_do():
    assert "memd start" in Unreachable().message
