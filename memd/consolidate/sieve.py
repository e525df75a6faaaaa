"""A regular expression, tried in a process of its own: one that would search for ever is ended.

While Python searches, nothing else in the process goes on, and a repetition within a repetition, such
as `(a+)+$`, can search longer than anybody lives. Not here: what the process does (sifting.py).
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memd.errors import BadRequest, Broken

PATTERN_CHARACTERS = 1_000
TIME_MAX_S = 5.0
"""For some hundred texts at once, which take milliseconds."""


class Sieve:
    """Takes what a pattern finds out of texts. May be used by several threads. Close it."""

    def __init__(self, pattern: str, time_max_s: float = TIME_MAX_S) -> None:
        """BadRequest if it is no regular expression, or would find nothing at all everywhere."""
        if not pattern or len(pattern) > PATTERN_CHARACTERS:
            raise BadRequest(f"pattern: between 1 and {PATTERN_CHARACTERS} characters")
        self._time_max_s = time_max_s
        self._lock = threading.Lock()
        program = str(Path(__file__).with_name("sifting.py"))
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-I", "-S", program, str(time_max_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            refusal = self._ask(pattern)
            if refusal is not None:
                raise BadRequest(f"pattern: {refusal}")
            stack.pop_all()

    def clean(self, values: Sequence[Any]) -> list[Any]:
        """These texts and JSON values without what the pattern finds. BadRequest if that takes too long."""
        answer: list[Any] = self._ask(list(values))
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with self._lock:
            self._process.communicate()

    def _ask(self, said: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(said).encode() + b"\n")
            self._process.stdin.flush()
            if line := self._process.stdout.readline():
                return json.loads(line)
        if self._process.wait() != -signal.SIGALRM:
            raise Broken("the process that tries the pattern has ended; try again")
        raise BadRequest(
            f"pattern: it searches longer than {self._time_max_s:g} seconds in some of the texts; a"
            " repetition within a repetition does that, such as (a+)+. What was replaced until then"
            " stays replaced; try a simpler pattern"
        )
