import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.transfer.markdown import split_front_matter

NOTE = """---
# a comment
title: "Setup: the guide"
tags: [ops, 'deploy']
Date: 2024-01-02
aliases:
  - one
  - two
description: >
  folded
  text
metadata:
  type: feedback
---
body
"""


def test_what_people_write_there_is_understood():
    facts = split_front_matter(NOTE)
    assert facts.one("title") == "Setup: the guide"
    assert facts.many("tags") == ["ops", "deploy"]
    assert facts.one("created", "date") == "2024-01-02"
    assert facts.many("aliases") == ["one", "two"]
    assert facts.one("description") == "folded text"
    assert facts.one("type", "metadata.type") == "feedback"
    assert (facts.body, facts.line) == ("body\n", 15)


def test_toml_and_tags_between_commas():
    facts = split_front_matter('+++\ntitle = "A"\ntags = "x, y"\n+++\nb')
    assert (facts.one("title"), facts.many("tags"), facts.body) == ("A", ["x", "y"], "b")


@pytest.mark.parametrize(
    "text", ["", "---\n", "---\n\ntext\n\n---\nmore", "a: b\n---\n", "--- a"]
)
def test_a_rule_of_dashes_is_no_block(text):
    facts = split_front_matter(text)
    assert (facts.values, facts.body, facts.line) == ({}, text, 1)


@given(st.text(st.sampled_from("ab:=-[]>|\"' \n#"), max_size=200))
def test_nothing_raises(block):
    split_front_matter(f"---\n{block}\n---\nbody")
