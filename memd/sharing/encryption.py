"""Encryption of chunks with age: who reads a sync target learns only how much is written, when, by which device.

age hides and does not sign: who knows the public keys and can write to the place can write memories there. What
is not encrypted is refused nevertheless, because the public keys stand in no file of the place: who has nothing
but the place can write nothing that is read.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memd.config import SyncConfig
from memd.errors import BadRequest, ConfigError
from memd.sharing.chunks import AGE_MAGIC, PLAIN, Sealing
from memd.text import digest

_IDENTITY_BYTES_MAX = 65_536
_OTHERS_MODE = 0o077
_NEVER_PLAIN = (
    "it is not encrypted, and [sync] here names recipients: set them on the machine that wrote it, too;"
    " its next sync writes its log anew"
)


def make_sealing(recipients: Sequence[str], identity: str) -> Sealing:
    """Encrypt for these public keys, and decrypt with the keys in a file. ConfigError if it cannot be."""
    age = _import_pyrage()
    keys = _read_identities(age, identity)
    own = [str(key.to_public()) for key in keys]
    wanted = sorted({one.strip() for one in recipients})
    parsed = [_parse_recipient(age, one) for one in wanted]
    if not set(own) & set(wanted):
        raise ConfigError(
            f"[sync] recipients: none is this machine's own, so it could not read its own log; add {own[0]}"
        )

    def decrypt(content: bytes) -> bytes:
        if not content.startswith(AGE_MAGIC):
            raise BadRequest(_NEVER_PLAIN)
        try:
            return bytes(age.decrypt(content, keys))
        except age.DecryptError:
            raise BadRequest(
                f"it is encrypted for other keys than those in {identity}: add {own[0]} to recipients under"
                " [sync] on the machine that wrote it; its next sync writes its log anew"
            ) from None

    return Sealing(
        lambda content: bytes(age.encrypt(content, parsed)), decrypt, digest("age", *wanted)[:32]
    )


def read_sealing(config: SyncConfig, key_file: str) -> Sealing:
    """Make the encryption of chunks from the settings. ConfigError if they are wrong."""
    if not config.recipients:
        return PLAIN
    named = config.identity
    return make_sealing(config.recipients, str(Path(named).expanduser()) if named else key_file)


def read_public_keys(path: str) -> list[str]:
    """The public keys of the identities in a file. ConfigError if it cannot be used."""
    return [str(key.to_public()) for key in _read_identities(_import_pyrage(), path)]


def create_identity(path: str) -> str:
    """Write a new identity to a file that is not there yet; its public key."""
    made = _import_pyrage().x25519.Identity.generate()
    public = str(made.to_public())
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
        file.write(f"# public key: {public}\n{made}\n")
        file.flush()
        os.fsync(file.fileno())
    return public


def _import_pyrage() -> Any:
    try:
        import pyrage  # noqa: PLC0415  # an extra that most do without
    except ImportError as error:
        raise ConfigError(
            "encryption needs pyrage: install memd with its extra, `uv tool install 'memd-daemon[age]'`, then"
            f" `memd restart` ({error})"
        ) from None
    return pyrage


def _parse_recipient(age: Any, text: str) -> Any:
    with contextlib.suppress(age.RecipientError):
        return age.x25519.Recipient.from_str(text)
    raise ConfigError(
        f"[sync] recipients: {text[:80]!r} is not an age public key (age1…); `memd sync --new-key` shows"
        " that of a machine"
    )


def _read_identities(age: Any, path: str) -> list[Any]:
    """Every identity in a file as age-keygen writes it."""
    lines = (line.strip() for line in _read_private(path).splitlines())
    found = []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        try:
            found.append(age.x25519.Identity.from_str(line))
        except age.IdentityError:
            raise ConfigError(
                f"{path}: line {number} is not an age key (AGE-SECRET-KEY-1…)"
            ) from None
    if not found:
        raise ConfigError(f"{path} holds no age key; move it away, then `memd sync --new-key`")
    return found


def _read_private(path: str) -> str:
    """The text of a file that only its owner may read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ConfigError(
            f"{path} is not there: `memd sync --new-key` makes a key for this machine"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file")
        if found.st_mode & _OTHERS_MODE or found.st_uid != os.getuid():
            mode = stat.S_IMODE(found.st_mode)
            raise ConfigError(
                f"{path} is open to others or another's (mode {mode:04o}): `chmod 600` it; if others may"
                " have read it, make a new key"
            )
        return file.read(_IDENTITY_BYTES_MAX).decode("ascii", "replace")
