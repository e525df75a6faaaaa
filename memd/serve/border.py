"""What may go wrong behind the door, as the caller is told it. Pure.

A MemdError is told in its own words. Anything else is a fault of ours: the caller learns that there
is one, the log learns which. This is one of the three borders where foreign errors are translated.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from memd.errors import BadRequest, Broken, MemdError
from memd.serve import framing

UNEXPECTED = (
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
"""Faults of ours that cost one answer and nothing else."""
SORRY = "memd could not do this; see the log"


@dataclass(frozen=True, slots=True)
class Told:
    """A JSON-RPC error: its code, its message, and the name of memd's error in `data`."""

    code: int
    message: str
    name: str

    @property
    def data(self) -> dict[str, str]:
        """What a client makes the same error of again."""
        return {"error": self.name}


def told(error: BaseException) -> Told:
    """What the caller is told of an error."""
    if isinstance(error, BadRequest):
        return Told(framing.INVALID_PARAMS, error.message, type(error).__name__)
    if isinstance(error, MemdError):
        return Told(framing.BROKEN, error.message, type(error).__name__)
    return Told(framing.BROKEN, SORRY, Broken.__name__)


def unfit(error: ValidationError) -> BadRequest:
    """The first thing that pydantic found wrong, with the field named and no value repeated."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Which branch of a union pydantic tried is its own business.
    where = ".".join(str(part) for part in first["loc"] if not _is_branch(part))
    said = "there is no such parameter" if first["type"] == "extra_forbidden" else first["msg"]
    said = said.removeprefix("Value error, ")
    return BadRequest(f"{where}: {said[:1].lower()}{said[1:]}" if where else said)


def _is_branch(part: int | str) -> bool:
    return isinstance(part, str) and (part in {"int", "str"} or part.startswith("constrained-"))
