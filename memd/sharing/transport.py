"""Interface of transports between devices: keep one log for each device, written by that device alone.

A transport neither looks into records nor decides anything. Reading returns what stands in each log behind a
position; appending continues the caller's own log. Whatever a transport returns twice, late or in another
order changes nothing: merging does not depend on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memd.errors import Broken
from memd.sharing.records import Record


class PlaceUnreachable(Broken):
    """The sync target cannot be reached now; what is to be sent waits."""


class LogLost(Broken):
    """The own log does not end where it ended, or lacks a part: somebody removed it. It can be rewritten."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A record's position in a log that has one row for each name."""

    name: str
    seq: int
    mark: int
    """A hash of the row: the sum of all of them is that of the log."""
    problem: str
    """`refused` or `newer` if no record was made of it, else "": `reason` says why."""
    reason: str


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Some records of one log, all or nothing of which is merged."""

    device: str
    label: str
    """What its device is called."""
    position: str
    """Where the log goes on behind them."""
    records: tuple[Record, ...]
    newer: tuple[str, ...] = ()
    """What it says that only a newer memd understands, in a few words each."""
    is_first: bool = False
    """Whether a log begins with it."""
    rows: tuple[LogRow, ...] = ()
    """The rows that were read, where a log has one row a name. `position` is a number, and at the end the sum of all marks."""


@dataclass(frozen=True, slots=True)
class RefusedChunk:
    """The reason for which a log cannot be read further."""

    device: str
    chunk: str
    """The name of the file, or of whatever holds the batch."""
    reason: str


class Transport(Protocol):
    """A target's logs, as one device sees them. Every method blocks; PlaceUnreachable or OSError if it cannot."""

    @property
    def form(self) -> str:
        """Name the form in which it writes records now: a log that was written in another form is rewritten."""

    def list_logs(self) -> set[str]:
        """The devices that have a log here."""

    def read(
        self, positions: Mapping[str, str], *, only_erasures: bool = False
    ) -> Iterator[LogBatch | RefusedChunk]:
        """Yield what follows these positions (device → position) in every log, the caller's own included.

        A log that is not named is read from its beginning. A log ends at its first refusal; others go on.
        `only_erasures`: without any record but those that say what was forgotten.
        """

    def describe_own(self, position: str) -> str:
        """Return a hash of the own log there; "" if the log does not end at this position."""

    def append(self, records: Sequence[Record], position: str, now: int) -> str:
        """Append to the own log, which ends at this position ("": is empty); the position of its new end.

        LogLost if it does not end there.
        """

    def rewrite(self, records: Sequence[Record], position: str, now: int) -> str:
        """Make the own log consist of these records alone, with no byte of its former content."""
