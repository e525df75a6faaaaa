"""README.md and docs/ say what memd does: their examples are real output, and their commands exist."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def played():
    """Run the two sessions of the picture through a real daemon, once."""
    words = [sys.executable, ROOT / "scripts" / "picture", "--text"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_second_session_knows_what_the_first_one_learned(played):
    start, prompt, answer = played.split("\n\n")
    assert "instruction: Always run python3 -m unittest -q" in start
    assert "decision: We keep sessions in SQLite rather than Redis" in start
    assert "fix: Fixed: Login answers 500" in prompt
    assert '"title": "We keep sessions in SQLite rather than Redis"' in answer


def test_the_picture_shows_the_same_memories():
    picture = (ROOT / "docs" / "second-session.svg").read_text(encoding="utf-8")
    assert "decision: We keep sessions in SQLite rather than Redis" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", ""), "no outside fonts"
