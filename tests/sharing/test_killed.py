"""A sync whose process is killed with SIGKILL, step by step."""

import subprocess
import sys

_STRIDE = 8
"""Every eighth step in the suite; `python -m tests.sharing.dying FOLDER 1` tries all."""
_KILLED_MIN = 8


def test_a_sync_that_is_killed_at_any_step_loses_doubles_and_keeps_nothing(tmp_path):
    words = [sys.executable, "-m", "tests.sharing.dying", str(tmp_path), str(_STRIDE)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) >= _KILLED_MIN
