"""Chunks: compressed lines of JSON, named after their SHA-256, each naming the one before it.

A log is a chain of chunks in one epoch; when it is rewritten, the next epoch begins. The name of a chunk is
`EPOCH-NUMBER-HASH.memd`; so what was cut off, changed, put in another's folder or left out is found at once.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memd.errors import BadRequest, RecordTooNew
from memd.sharing.records import SYNC_FORMAT, Record, from_fields, group_by_size, to_fields
from memd.store.queries import json_line, parse_json_line

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
