"""Memories in columns on a terminal: number, kind, speaker, time, title; what else is to be said stands below the title."""

import re
from collections.abc import Iterable, Iterator, Sequence

from memd.cli import output, screen
from memd.cli.output import Memory
from memd.cli.screen import Screen

_GAP = "  "
_WIDTH_WITH_SPEAKER = 72
"""Columns from which on the speaker has one of its own."""
_SNIPPET_LINES_MAX, _PLACE_WIDTH_MAX, _TITLE_WIDTH_MIN = 3, 20, 14


class MemoryColumns:
    """The columns of some memories; `times` are what each shows as its time."""

    def __init__(
        self,
        terminal: Screen,
        memories: Sequence[Memory],
        times: Iterable[str],
        words: re.Pattern[str] | None = None,
    ) -> None:
        self._screen, self._words = terminal, words
        self._times = dict(zip((one["id"] for one in memories), times, strict=True))
        self._id_width = max((len(str(one["id"])) + 1 for one in memories), default=2)
        self._kind_width = max((len(one["kind"]) for one in memories), default=4)
        self._time_width = max(map(len, self._times.values()), default=3)
        self._has_speaker = terminal.width >= _WIDTH_WITH_SPEAKER
        speaker_width = len("agent") + len(_GAP) if self._has_speaker else 0
        self.indent = 1 + self._id_width + self._kind_width + speaker_width + self._time_width
        self.indent += 3 * len(_GAP)
        self.text_width = max(terminal.width - self.indent - 1, 10)

    def format(self, memory: Memory, snippet: str = "") -> Iterator[str]:
        """A memory: the line of its title, then what is to be said of it, then a snippet."""
        paint, is_hidden = self._screen.paint, bool(memory.get("superseded_by"))
        number = f"#{memory['id']}".rjust(self._id_width)
        kind = self._screen.paint_kind(memory["kind"], memory["kind"].ljust(self._kind_width))
        fields = [" " + paint(number, "dim"), kind]
        speaker = str(memory.get("speaker", ""))
        if self._has_speaker:
            fields.append(paint(speaker.ljust(len("agent")), "" if speaker == "user" else "dim"))
        fields.append(paint(self._times[memory["id"]].rjust(self._time_width), "dim"))
        place = [speaker] if speaker and not self._has_speaker else []
        place += [output.one_line(memory["elsewhere"])] if memory.get("elsewhere") else []
        beside = screen.cut("".join(f" · {name}" for name in place), _PLACE_WIDTH_MAX)
        if self.text_width - screen.measure(beside) < _TITLE_WIDTH_MIN:
            beside = ""
        room = self.text_width - screen.measure(beside)
        title = screen.cut(output.one_line(memory["title"]), room)
        style = "struck" if is_hidden else "bold"
        fields.append(self._screen.paint_matches(title, self._words, style) + paint(beside, "dim"))
        yield _GAP.join(fields)
        if marks := output.list_marks(memory):
            for line in screen.wrap("; ".join(marks), self.text_width):
                yield " " * self.indent + paint(line, "warning")
        for line in screen.wrap(output.one_line(snippet), self.text_width, _SNIPPET_LINES_MAX):
            yield " " * self.indent + self._screen.paint_matches(line, self._words)
