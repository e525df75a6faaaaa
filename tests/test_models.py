import dataclasses
import inspect

from memd import models
from memd.models import EdgeType, Kind, Space
from tests.tables import every_row

VALUES = [kind for _, kind in inspect.getmembers(models, dataclasses.is_dataclass)]


@every_row("kind", VALUES)
def test_every_noun_is_frozen(kind):
    """What two rooms share must not change under one of them."""
    assert kind.__dataclass_params__.frozen


def test_the_words_are_those_of_the_glossary():
    assert [kind.value for kind in Kind] == [
        "decision", "fix", "failure", "change", "discovery", "preference", "instruction", "fact",
        "task", "note", "session",
    ]  # fmt: skip
    assert len(EdgeType) == 9


def test_a_space_s_name_differs_exactly_when_the_space_does():
    space = Space("ollama", "nomic", "1", 768, digest="abc")
    assert space.name == "ollama/nomic/1/768/abc"
    for changed in ({"model": "other"}, {"version": "2"}, {"dimensions": 256}, {"digest": "def"}):
        assert dataclasses.replace(space, **changed).name != space.name
