"""Chunks: compressed lines of JSON, named after their SHA-256, each naming the one before it.

A log is a chain of chunks in one epoch; when it is rewritten, the next epoch begins. The name of a chunk is
`EPOCH-NUMBER-HASH.memd`; so what was cut off, changed, put in another's folder or left out is found at once.

Encrypted with age, a sync target tells only how much is written, when, by which device. age hides and does not sign:
who knows the public keys and can write to the place can write memories there. What is not encrypted is refused
nevertheless, because the public keys stand in no file of the place: who has nothing but the place can write nothing
that is read.
"""

import contextlib
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd.config import SyncConfig
from memd.errors import BadRequest, ConfigError, RecordTooNew
from memd.sharing.records import SYNC_FORMAT, Record, from_fields, group_by_size, to_fields
from memd.store.queries import json_line, parse_json_line
from memd.text import digest

CHUNK_BYTES_MAX = 1024 * 1024
"""Of the lines of one chunk before they are compressed, unless a single record is longer."""
FILE_BYTES_MAX = 48 * 1024 * 1024
"""A longer file is no chunk."""
SUFFIX = ".memd"
AGE_MAGIC = b"age-encryption.org/v1\n"
"""How an encrypted chunk begins."""
_HASH_DIGITS = 32
_HEADER = "memd-sync"
_ERASURE = b'{"record":"forget",'
"""How the line of such a record begins, by whichever memd it was written."""
_NAME = re.compile(
    rf"(\d{{4,9}})-(\d{{6,9}})-([0-9a-f]{{{_HASH_DIGITS}}}){re.escape(SUFFIX)}", re.ASCII
)


def _open_plain(content: bytes) -> bytes:
    if content.startswith(AGE_MAGIC):
        raise BadRequest("it is encrypted: set recipients under [sync] on this machine, too")
    return content


@dataclass(frozen=True, slots=True)
class Sealing:
    """Encryption of chunks; by default none. `open` raises BadRequest for a chunk that it cannot open."""

    seal: Callable[[bytes], bytes] = bytes
    open: Callable[[bytes], bytes] = _open_plain
    form: str = ""
    """Names whom it encrypts for: a log that was written in another form is rewritten."""


PLAIN = Sealing()


@dataclass(frozen=True, slots=True, order=True)
class ChunkName:
    """The position of a chunk in its log, and the hash of its bytes."""

    epoch: int
    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.epoch:04d}-{self.number:06d}-{self.hash}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The content of a chunk."""

    label: str
    previous: str
    """The name of the chunk before it in the same epoch; "" for the first."""
    records: tuple[Record, ...]
    newer: tuple[str, ...] = ()
    """What it says that only a newer memd understands, in a few words each."""


def parse_name(name: str) -> ChunkName | None:
    """The parts of a file's name; None if it is not that of a chunk."""
    match = _NAME.fullmatch(name)
    return ChunkName(int(match[1]), int(match[2]), match[3]) if match else None


def split_records(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the records in groups that each fit into a chunk."""
    return group_by_size(
        records, lambda one: len(json_line(to_fields(one))), CHUNK_BYTES_MAX, len(records)
    )


def write_chunk(  # what a header says
    records: Sequence[Record],
    device: str,
    label: str,
    previous: ChunkName | None,
    epoch: int,
    sealing: Sealing,
) -> tuple[ChunkName, bytes]:
    """(name, bytes) of the chunk that follows another in this epoch."""
    number = previous.number + 1 if previous else 1
    header = {
        "record": _HEADER, "format": SYNC_FORMAT, "device": device, "label": label, "epoch": epoch,
        "number": number, "previous": str(previous) if previous else "", "count": len(records),
    }  # fmt: skip
    lines = b"".join(map(json_line, (header, *map(to_fields, records))))
    content = sealing.seal(zlib.compress(lines, 6))
    return ChunkName(epoch, number, hash_bytes(content)), content


def read_chunk(
    content: bytes, name: ChunkName, device: str, sealing: Sealing, *, only_erasures: bool = False
) -> Chunk:
    """Check a chunk's bytes against its name and return what it says. BadRequest if it is not whole.

    `only_erasures`: of its records only those that say what was forgotten.
    """
    if hash_bytes(content) != name.hash:
        raise BadRequest("its SHA-256 is not the one in its name: it was cut off or changed")
    lines = _decompress(sealing.open(content)).split(b"\n")
    if lines.pop() != b"":
        raise BadRequest("it ends within a line")
    header = _parse_line(lines[0] if lines else b"")
    _check_header(header, name, device, len(lines) - 1)
    rest = [
        _parse_line(line) for line in lines[1:] if not only_erasures or line.startswith(_ERASURE)
    ]
    records, newer = _read_records(rest, is_newer=header["format"] > SYNC_FORMAT)
    return Chunk(str(header["label"])[:100], str(header["previous"]), records, newer)


def _read_records(
    lines: Iterable[Any], *, is_newer: bool
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Read (the records that this memd knows, the others); `is_newer`: a newer memd wrote all of them."""
    records, newer = [], []
    for line in lines:
        try:
            records.append(from_fields(line))
        except RecordTooNew as error:
            newer.append(error.message)
        except BadRequest as error:
            if not is_newer:
                raise
            newer.append(error.message)
    return tuple(records), tuple(newer)


def _check_header(header: Any, name: ChunkName, device: str, count: int) -> None:
    if not isinstance(header, dict) or header.get("record") != _HEADER:
        raise BadRequest("it is no chunk of memd sync")
    if type(header.get("format")) is not int:
        raise BadRequest("its header is damaged")
    said = (header.get("device"), header.get("epoch"), header.get("number"), header.get("count"))
    if said != (device, name.epoch, name.number, count):
        raise BadRequest("it says that it is another chunk, or of another device")
    if not isinstance(header.get("label"), str) or not isinstance(header.get("previous"), str):
        raise BadRequest("its header is damaged")


def hash_bytes(content: bytes) -> str:
    """The part of the SHA-256 that stands in the name of a chunk."""
    return hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]


def _decompress(content: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        lines = stream.decompress(content, FILE_BYTES_MAX)
    except zlib.error:
        raise BadRequest("it is not compressed as a chunk is") from None
    if not stream.eof or stream.unused_data:
        raise BadRequest("it is longer or shorter than a chunk")
    return lines


def _parse_line(line: bytes) -> Any:
    try:
        return parse_json_line(line)
    except (ValueError, RecursionError):
        raise BadRequest("a line that is not JSON") from None


# ── Encryption ────────────────────────────────────────────────────────────────────────────────────

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
