"""Read Aider's chat history: Markdown, with `####` before each line of the user's and `>` before what Aider itself says.

The form is what Aider's own code writes (`aider/io.py`). It has a time only where a session begins, and no ids: a
line's number in its session takes their place, for Aider only appends. A change of a file is told by Aider's own line.
"""

import contextlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from memd.text import digest
from memd.transfer.readers import ImportedPayload, LineReader, SessionWriter

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_USER = "#### "
_LINE_END = "  "
"""A line of the user's ends with it; a heading in an answer does not."""
_AIDER = "> "
_ASKING = re.compile(r"/(?:ask|code|architect|chat-mode\s+\w+|context)\s+(?=\S)")
"""Commands whose argument is a prompt."""
_APPLIED = re.compile(r"> Applied edit to (.+?)\s*")
_BLOCK = re.compile(
    r"(?:^[^\n`]*\n)?^```[^\n]*\n<{5,9} SEARCH\n.*?^>{5,9} REPLACE\s*\n```[ \t]*$\n?",
    re.DOTALL | re.MULTILINE,
)
"""A change as the model writes it, with the line before it that names the file."""
_BLANK = "<blank>"


@dataclass(slots=True)
class AiderReader(LineReader):
    """Reads one history. `directory` is that of the file."""

    directory: str
    _prompt: list[str] = field(default_factory=list)
    _answer: list[str] = field(default_factory=list)

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads that this line completes."""
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        text = text.rstrip("\r\n")
        self._lines += 1
        if begun := _STARTED.fullmatch(text):
            found = self.finish()
            self._begin(begun[1])
            return found
        if self._writer is None:
            self.skipped["no session"] += bool(text.strip())
            return []
        if text.startswith(_USER) and text.endswith(_LINE_END):
            self._end_answer(self._writer)
            self._prompt.append(text[len(_USER) :].strip())
            return self.queue.take()
        self._end_prompt(self._writer)
        if applied := _APPLIED.fullmatch(text):
            # The answer is told before its changes are made, and stays the end of the turn.
            use_id = self._line_id()
            self._writer.add_call(
                use_id, "Edit", {"file_path": str(Path(self.directory, applied[1]))}
            )
            self._writer.add_result(use_id, self.last_at, tool_response="")
        elif text.startswith(_AIDER):
            self.skipped["not conversation"] += 1
        else:
            self._answer.append(text)
        return self.queue.take()

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the end of the last turn."""
        if self._writer is not None:
            self._end_prompt(self._writer)
            self._end_answer(self._writer)
        return LineReader.finish(self, is_growing=is_growing)

    def _begin(self, started: str) -> None:
        with contextlib.suppress(ValueError, OverflowError):
            # Aider writes the time of the machine that it ran on.
            local = datetime.fromisoformat(started).astimezone()
            self.queue.read_time(int(local.timestamp() * 1000))
        session = digest("aider", self.directory, started)[:32]
        self._writer = SessionWriter(session, self.directory, queue=self.queue)
        self._lines = 0

    def _line_id(self) -> str:
        return f"{self._writer.session if self._writer else ''}:{self._lines}"

    def _end_prompt(self, writer: SessionWriter) -> None:
        said, self._prompt = "\n".join(self._prompt).strip(), []
        said = _ASKING.sub("", said, count=1)
        if not said or said == _BLANK:
            return
        if said.startswith(("/", "!")):
            self.skipped["command"] += 1
            return
        writer.add_prompt(said, self.last_at, turn=self._line_id())

    def _end_answer(self, writer: SessionWriter) -> None:
        said, self._answer = _BLOCK.sub("", "\n".join(self._answer)).strip(), []
        if said:
            writer.add_text(said, self.last_at, self._line_id())
