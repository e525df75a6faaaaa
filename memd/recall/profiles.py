"""Recipes of retrieval as data: which legs, how fused, which signals in which order. Pure.

A profile fuses what its legs found and then applies its steps one by one; each step is one signal
(signals.py) that is added, multiplied or caps the score. Users copy and change one in config.toml:
`[profiles.mine] base = "siftcoder"`, then only what differs. Not here: any formula.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from memd.errors import BadRequest, ConfigError

Leg = Literal["topic", "lexical", "vector"]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


Number = Annotated[float, AfterValidator(_finite)]
Weight = Annotated[float, Field(ge=0), AfterValidator(_finite)]
Days = Annotated[float, Field(gt=0), AfterValidator(_finite)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lexical(_Data):
    """BM25's constants. A word in the title counts `title_weight` times."""

    k1: Weight = 0.9
    b: Annotated[float, Field(ge=0, le=1)] = 0.4
    title_weight: Weight = 1.0


class Step(_Data):
    """One signal applied to every candidate's score."""

    signal: Literal[
        "recency", "tier", "title", "intent", "context", "pin", "cap", "confidence",
        "quality", "length", "frequency",
    ]  # fmt: skip
    op: Literal["+", "*", "<"] = "+"
    weight: Weight = 1.0
    """`+`: the value is multiplied by it. `*`: not used. `<`: the cap itself."""
    shape: Literal["exponential", "hyperbolic", "logarithmic"] = "hyperbolic"
    """recency: exp(−age/days), 1/(1 + age/days), 1 − log10(1 + age in days)/10."""
    days: Days = 365.0
    previous: Weight = 0.4
    next: Weight = 0.2
    session: Weight = 0.4
    """context: how much of the neighbours' and the whole session's lexical score counts."""


class Diversity(_Data):
    """What keeps one story from filling the answer."""

    per_episode: Annotated[int, Field(ge=1)] | None = None
    """So many hits of one turn first; the rest of it comes after everything else."""
    jaccard: Annotated[float, Field(gt=0, le=1)] | None = None
    """A hit whose word pairs overlap a better one's by more than this is demoted, not removed."""


class Profile(_Data):
    """A named recipe."""

    fusion: Literal["rrf", "max", "zscore"] = "rrf"
    """rrf: weight/(rrf_k + rank). max: weight × score/best score. zscore: weight × standardised score."""
    rrf_k: Annotated[int, Field(ge=1)] = 60
    cosine_floor: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """The vector leg returns nothing below it: an empty answer is better than a padded one."""
    legs: Mapping[Leg, Weight]
    scale: Weight = 1.0
    """What the fused score is multiplied by before the steps."""
    lexical: Lexical = Lexical()
    steps: tuple[Step, ...] = ()
    when_recent: Mapping[str, Any] | None = None
    """What differs when the question asks for the latest."""
    diversity: Diversity = Diversity()
    pool: Annotated[int, Field(ge=1, le=1_000)] = 50
    k: Annotated[int, Field(ge=1, le=100)] = 5

    @model_validator(mode="after")
    def _has_a_leg(self) -> "Profile":
        if not any(weight > 0 for weight in self.legs.values()):
            raise ValueError("at least one leg must have a weight above 0")
        return self


PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    # (wb/(60+rb) + wv/(60+rv)) · exp(−age/7 d)
    "siftcoder": {
        "fusion": "rrf",
        "legs": {"lexical": 1.0, "vector": 1.0},
        "lexical": {"k1": 1.2, "b": 0.75},
        "steps": [{"signal": "recency", "op": "*", "shape": "exponential", "days": 7.0}],
    },
    "memd": {
        "fusion": "max",
        "legs": {"topic": 1.0, "lexical": 1.0, "vector": 0.1},
        "cosine_floor": 0.2,
        "lexical": {"k1": 0.9, "b": 0.4, "title_weight": 2.0},
        "steps": [
            {"signal": "context", "previous": 0.4, "next": 0.2, "session": 0.4},
            {"signal": "title", "weight": 0.1},
            {"signal": "intent", "weight": 0.35},
            {"signal": "recency", "shape": "hyperbolic", "days": 365.0, "weight": 0.05},
            {"signal": "pin", "weight": 0.1},
        ],
        "when_recent": {
            "steps": [
                {"signal": "context", "previous": 0.4, "next": 0.2, "session": 0.4},
                {"signal": "intent", "weight": 0.2},
                {"signal": "recency", "shape": "hyperbolic", "days": 7.0, "weight": 1.5},
            ],
        },
        "diversity": {"per_episode": 1},
    },
}  # fmt: skip
"""The recipes that come with memd; see the README for where each was published."""


def resolve(name: str, own: Mapping[str, Mapping[str, Any]]) -> Profile:
    """The profile of this name; BadRequest if there is none, ConfigError if it is not valid."""
    try:
        return Profile.model_validate(_merged(name, own, ()))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in ("profiles", name, *first["loc"]))
        raise ConfigError(f"{key}: {first['msg']}") from error


def resolve_all(own: Mapping[str, Mapping[str, Any]]) -> dict[str, Profile]:
    """Every profile there is, so that a mistake shows at the start and not at a question."""
    return {name: resolve(name, own) for name in (*PUBLISHED, *own)}


def _merged(
    name: str, own: Mapping[str, Mapping[str, Any]], via: tuple[str, ...]
) -> dict[str, Any]:
    if name in via:
        raise ConfigError(
            f"profiles.{via[0]}.base: goes round in a circle: {' → '.join((*via, name))}"
        )
    data = own.get(name) or PUBLISHED.get(name)
    if data is None:
        known = ", ".join(sorted({*PUBLISHED, *own}))
        if via:
            raise ConfigError(
                f"profiles.{via[-1]}.base: there is no profile {name!r}; there are {known}"
            )
        raise BadRequest(f"there is no profile {name!r}; there are {known}")
    base = data.get("base")
    if base is None:
        return dict(data)
    inherited = _merged(str(base), own, (*via, name))
    return overlaid(inherited, {key: value for key, value in data.items() if key != "base"})


def overlaid(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `change` on top: tables are merged, everything else is replaced."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = overlaid(old, value) if both else value  # type: ignore[arg-type]  # just tested
    return result


def for_recent(profile: Profile) -> Profile:
    """The profile as it is when the question asks for the latest."""
    if not profile.when_recent:
        return profile
    return Profile.model_validate(overlaid(profile.model_dump(), profile.when_recent))
