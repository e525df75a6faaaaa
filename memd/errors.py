"""Exception hierarchy.

    MemdError
    ├── BadRequest            the caller's fault: say what, and what to do
    │   ├── UnknownId         no such row, or not in this vault or project
    │   ├── RecordTooNew      a newer memd wrote it: it is left, and told
    │   ├── SelectionChanged  other rows would go than the ones that were shown
    │   └── ConfigError       config.toml is wrong; the message names the key
    └── Broken                ours, or the machine's
        ├── Unreachable       no daemon answers on the socket
        ├── AlreadyRunning    another daemon holds this vault
        ├── SpoolBroken       the spool could not be read or written
        ├── EngineFailed      a model did not answer, in time or at all
        │   └── EngineAbsent  no server answers at its address
        └── VaultError        the database file
            ├── VaultBusy     another process holds the lock for longer than we wait
            ├── VaultFull     the disk is full, or the file may not grow
            ├── VaultCorrupt  SQLite says that the file is damaged
            ├── VaultGone     the file has lost its name while it was open
            ├── VaultForeign  the file is not memd's
            └── VaultNewer    a newer memd wrote it

SQLite's errors are translated in store/database.py and store/foreign_sqlite.py, those of HTTP in
embeddings/providers.py. A docstring is the default message.
"""

import re

_EITHER = re.compile(r"(mem_[a-z]+) or (`memd [^`]*`)")
"""What is to be called, as an agent names it and as a person does."""
UNEXPECTED_ERRORS = (
    OSError,  # TimeoutError too
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RuntimeError,  # RecursionError too
    MemoryError,
    AssertionError,
)
"""Bugs and outages that cost one answer; they never end the daemon."""


class MemdError(Exception):
    """Something went wrong in memd."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())

    @property
    def message(self) -> str:
        """The text that users see."""
        return str(self)

    def name_tools(self) -> str:
        """Return the message for an agent: it calls tools and types no commands."""
        return _EITHER.sub(r"\1", self.message)

    def name_commands(self) -> str:
        """Return the message for a person, or an agent in its shell: they type commands."""
        return _EITHER.sub(r"\2", self.message)


class BadRequest(MemdError):
    """The request cannot be understood."""


class UnknownId(BadRequest):
    """There is no memory with this id."""


class SelectionChanged(BadRequest):
    """The selection has changed since it was shown, so nothing was erased. Look again at what would go."""


class RecordTooNew(BadRequest):
    """A newer memd wrote a record that this one cannot understand. It is left where it lies."""


class ConfigError(BadRequest):
    """The configuration is not valid."""


class Broken(MemdError):
    """memd could not do this; the log says more."""


class Unreachable(Broken):
    """The memd daemon is not running. Start it with `memd start`."""


class AlreadyRunning(Broken):
    """Another memd daemon already serves this vault."""


class SpoolBroken(Broken):
    """The spool could not be read or written."""


class EngineFailed(Broken):
    """The model did not answer."""


class EngineAbsent(EngineFailed):
    """Nothing answers where the model should be served."""


class VaultError(Broken):
    """The vault could not be used."""


class VaultBusy(VaultError):
    """The vault is locked by another process."""


class VaultFull(VaultError):
    """The disk is full: the vault cannot grow. Make room; memd goes on by itself then."""


class VaultCorrupt(VaultError):
    """The vault is damaged; `memd doctor` says what can be done. The file is kept as it is."""


class VaultGone(VaultError):
    """The vault's file was deleted, moved or replaced while memd had it open.

    Put it back, or `memd stop` and `memd start` to open what is there now.
    """


class VaultForeign(VaultError):
    """The file is a database of another program. Nothing was changed."""


class VaultNewer(VaultError):
    """The vault was written by a newer memd. Nothing was changed; update memd."""
