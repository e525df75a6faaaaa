"""Ranking profiles as data, which retrievers, how fused, which signals in which order; and the formulas of the signals.

A profile fuses what its retrievers found and then applies its steps one by one; each step is one signal
that is added, multiplied or caps the score. Users copy and change one in config.toml:
`[profiles.mine] base = "siftcoder"`, then only what differs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memd.errors import BadRequest, ConfigError
from memd.index.columns import KIND_CODES
from memd.models import CLOCK_SKEW_MAX_MS, Kind

RetrieverName = Literal["topic", "lexical", "vector"]


Weight = Annotated[float, Field(ge=0)]


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LexicalSettings(_FrozenModel):
    """Settings of the lexical score: BM25 with `k1` and `b`, or the query likelihood with `mu` and `statement`.

    A word in the title counts `title_weight` times.
    """

    model: Literal["bm25", "likelihood"] = "bm25"
    k1: Weight = 0.9
    b: Annotated[float, Field(ge=0, le=1)] = 0.4
    mu: Annotated[float, Field(gt=0)] = 60.0
    """The terms of chance that are added to what a memory says."""
    statement: Annotated[float, Field(gt=0)] = 100.0
    """The least λ: up to about this many terms a memory says one thing, and its length costs little."""
    title_weight: Weight = 1.0


class ProfileStep(_FrozenModel):
    """One signal applied to every candidate's score."""

    signal: Literal[
        "recency", "tier", "intent", "context", "pin", "cap", "confidence",
        "quality", "length", "frequency", "title_all", "cap_pinned", "coactivation", "significance",
        "reinforcement", "entity",
    ]  # fmt: skip
    op: Literal["+", "*", "<"] = "+"
    weight: Weight = 1.0
    """`+`: weight · value is added. `*`: the score is multiplied by 1 − weight + weight · value.
    `<`: the cap itself."""
    shape: Literal["exponential", "hyperbolic", "logarithmic", "half_life"] = "hyperbolic"
    """recency: exp(−age/days), 1/(1 + age/days), 1 − log10(1 + age in days)/10, or 2^(−age/half-life)
    with a half-life by kind, prolonged by use."""
    days: Annotated[float, Field(gt=0)] = 365.0
    previous: Weight = 0.4
    next: Weight = 0.2
    session: Weight = 0.5
    """context: the shares that the neighbours and the whole session have of what a memory may be expected to say."""
    start: Annotated[float, Field(gt=0, lt=1)] | None = None
    """confidence: what each memory begins with; None: that depends on who says it."""
    rerank: bool = False
    """Whether it belongs to a second stage: left out if the vault cannot be read for it."""
    late: bool = False
    """Whether it comes after the threshold, and raises only what passed it."""


class RerankSettings(_FrozenModel):
    """The weights of `rerank = "terms"`; the formula is `precedence.rerank_by_terms`."""

    terms: Weight = 1.0
    matched: Weight = 0.1
    phrase: Weight = 0.4
    length: Weight = 0.01
    fused: Weight = 0.5


class LearnedSettings(_FrozenModel):
    """Settings of the learned space's part in every candidate's score, where there is one; see semantic.py.

    Once it leads, it replaces the `vector` retriever; while it is being filled, it stands beside it.
    """

    weight: Weight = 0.85
    """The worth of a memory that stands out far from those that may be seen; their mean gets 0."""
    chance: Weight = 0.6
    """What a word in common is worth by chance: so much less lexical scores count where the best may be chance."""
    spelling: Weight = 0.5
    """The worth of the hashing space's cosine beside the learned one."""
    words: Weight = 0.75
    """The worth of words, spelling and context beside meaning."""
    information: Weight = 1.0
    """What is added to that for each 30 nats that the best match has beyond chance: ten rare words do not meet by it."""
    near: float = 2.0
    """How far, in deviations, a memory must stand out to be a candidate with no word in common."""
    possible: float = -0.5
    """The same as `floor`, for an answer that is not `nothing`."""
    floor: float = 1.5
    """The same to match by its meaning alone, beyond what the best of this many memories does by chance."""


class DiversitySettings(_FrozenModel):
    """Settings that keep one story from filling the answer."""

    per_episode: Annotated[int, Field(ge=1)] | None = None
    """Hits of one turn that come first, and as many of what was stated in it; the rest of the turn comes after everything else."""
    alike: Annotated[float, Field(gt=0, le=1)] | None = None
    """Three hits or more in a row that say the same, and whose hashing vectors are at least this near, become one."""
    jaccard: Annotated[float, Field(gt=0, le=1)] | None = None
    """A hit whose word pairs overlap a better one's by more than this is demoted, not removed."""


class ThresholdSettings(_FrozenModel):
    """Settings of an adaptive threshold: what scores less is no hit."""

    ratio: Annotated[float, Field(gt=0, le=1)]
    """The share of the best score that a hit must have."""
    floor: Weight = 0.0
    """The score that the best must have, or there is no hit."""


class Profile(_FrozenModel):
    """A named recipe."""

    fusion: Literal["rrf", "sum", "squared"] = "rrf"
    """rrf: weight/(rrf_k + rank). sum: weight × the retriever's own score, of every candidate.
    squared: weight × cosine² by meaning, weight/(1 + 0.2 · (rank − 1)) by words."""
    rrf_k: Annotated[int, Field(ge=1)] = 60
    cosine_floor: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """The vector retriever returns nothing below it: an empty answer is better than a padded one."""
    legs: Mapping[RetrieverName, Weight]
    turns: Literal["words", "cosine"] = "words"
    """What ranks verbatim turns: full text, or the hashing space's cosine with those of the session that is asked for, or
    with the latest."""
    vector_without: tuple[Kind, ...] = ()
    """Kinds that the vector retriever leaves out."""
    weigh_words: bool = False
    """Whether the words of a question count in its hashing vector by how rare they are."""
    learned: LearnedSettings | None = None
    """None: a learned space that leads is the `vector` retriever, fused as the hashing one is."""
    scale: Weight = 1.0
    """What the fused score is multiplied by before the steps."""
    lexical: LexicalSettings = LexicalSettings()
    steps: tuple[ProfileStep, ...] = ()
    threshold: ThresholdSettings | None = None
    when_recent: Mapping[str, Any] | None = None
    """What differs when the question asks for the latest."""
    rerank: Literal["none", "terms", "model", "command"] = "none"
    """A second stage after all steps. terms: a formula over the words of every candidate. model: the
    scores of a language model, if there is one and it answers in time; else the order stays. command: the
    same by a program, which may leave hits out."""
    command: tuple[str, ...] = ()
    """The program of `rerank = "command"` and its arguments; it has `recall.rerank_s` seconds."""
    reranking: RerankSettings = RerankSettings()
    diversity: DiversitySettings = DiversitySettings()
    pool: Annotated[int, Field(ge=1, le=1_000)] = 50
    k: Annotated[int, Field(ge=1, le=100)] = 5

    @model_validator(mode="after")
    def _require_what_it_needs(self) -> "Profile":
        if not any(weight > 0 for weight in self.legs.values()):
            raise ValueError("at least one leg must have a weight above 0")
        if self.lexical.model != "likelihood" and any(s.signal == "context" for s in self.steps):
            raise ValueError("the signal context needs lexical.model = likelihood")
        if (self.rerank == "command") != bool(self.command):
            raise ValueError("rerank = command and a command need each other")
        return self


def _clawmem_composite(
    search: float, recency: float, confidence: float, *, is_spreading: bool = False
) -> dict[str, Any]:
    """ClawMem's composite with these three weights; `is_spreading`: co-activation comes after a threshold.

    Open in the publication: the scale of `search`. It must reach 1 for the weights to mean anything, so
    the fused score is divided by that of a double first rank, 2/61. The cap is for pinned ones alone:
    one that scores above 1 without its pin loses by it.
    """
    return {
        "scale": search * 61 / 2,
        "steps": [
            {"signal": "recency", "shape": "half_life", "weight": recency},
            {"signal": "confidence", "weight": confidence, "start": 0.5},
            {"signal": "quality", "op": "*"},
            {"signal": "length", "op": "*"},
            {"signal": "frequency", "op": "*"},
            {"signal": "pin", "weight": 0.3},
            {"signal": "cap_pinned", "op": "<", "weight": 1.0},
            {"signal": "coactivation", "op": "*", "late": is_spreading},
        ],
    }


def _clawmem_surfacing(k: int, ratio: float, floor: float) -> dict[str, Any]:
    """Select what ClawMem's hook takes of what it finds: the threshold first, then what is activated with what passed."""
    return {
        "base": "clawmem",
        **_clawmem_composite(0.50, 0.25, 0.25, is_spreading=True),
        "when_recent": _clawmem_composite(0.10, 0.70, 0.20, is_spreading=True),
        "threshold": {"ratio": ratio, "floor": floor},
        "k": k,
    }


_FTS5 = {"k1": 1.2, "b": 0.75}
"""What FTS5's bm25() has built in; all five published systems use it."""

BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    # (wb/(60+rb) + wv/(60+rv)) · exp(−age/7 d)
    "siftcoder": {
        "fusion": "rrf",
        "legs": {"lexical": 1.0, "vector": 1.0},
        "lexical": _FTS5,
        "steps": [{"signal": "recency", "op": "*", "shape": "exponential", "days": 7.0}],
        "pool": 50,
        "k": 5,
    },
    # 0.90·(1/(60+rv) + 1/(60+rf) + 0.20/(60+tier) + 0.01 if all words are in the title)
    #   + 0.10·0.033/(1 + age_h/8760)
    # Open: which words the bonus asks for. "Every word from the query": as typed, stop words too.
    "covalence": {
        "fusion": "rrf",
        "legs": {"lexical": 1.0, "vector": 1.0},
        "lexical": {**_FTS5, "title_weight": 5.0},
        "scale": 0.90,
        "steps": [
            {"signal": "tier", "weight": 0.90 * 0.20},
            {"signal": "title_all", "weight": 0.90 * 0.01},
            {"signal": "recency", "shape": "hyperbolic", "days": 365.0, "weight": 0.10 * 0.033},
        ],
        "k": 5,
    },
    # (w_s·search + w_r·recency + w_c·confidence) · quality · length · (1 + frequency)
    #   [+ 0.3 pinned, cap 1] · co-activation; near-duplicates demoted
    # Open: the weight of the path, which ClawMem's BM25 counts tenfold; a memory has none.
    "clawmem": {
        "fusion": "rrf",
        "legs": {"lexical": 1.0, "vector": 1.0},
        "lexical": _FTS5,
        **_clawmem_composite(0.50, 0.25, 0.25),
        "when_recent": _clawmem_composite(0.10, 0.70, 0.20),
        "diversity": {"jaccard": 0.6},
        "k": 10,
    },
    # ClawMem's three profiles of surfacing; `speed` asks no vectors. Its limits in tokens are the caller's.
    "clawmem-speed": {
        **_clawmem_surfacing(5, 0.65, 0.24), "legs": {"lexical": 1.0, "vector": 0.0},
    },
    "clawmem-balanced": _clawmem_surfacing(10, 0.55, 0.20),
    "clawmem-deep": _clawmem_surfacing(15, 0.45, 0.16),
    # 2/(60+rt) + 1/(60+rf) + 1/(60+rv); ties: the newer first, as all profiles have it. Each channel
    # hands on 5·k; tasks are in no vector channel.
    "memoturn": {
        "fusion": "rrf",
        "legs": {"topic": 2.0, "lexical": 1.0, "vector": 1.0},
        "lexical": _FTS5,
        "vector_without": ["task"],
        "turns": "cosine",
        "pool": 40,
        "k": 8,
    },
    # fts·0.3 + sim²·0.7 + significance; then, as a second stage, recency, log2 reinforcement, entities
    # Open: how much significance adds (here at most 0.1), and the second stage's formula. "A slight
    # boost" for recency: at most a tenth, half of it gone after 30 days. The others multiply, as in
    # MemU's own scoring modes: log2(1 + n), and 1.3 for an entity that the question names.
    "memu": {
        "fusion": "squared",
        "legs": {"lexical": 0.3, "vector": 0.7},
        "lexical": _FTS5,
        "steps": [
            {"signal": "significance", "weight": 0.1},
            {"signal": "recency", "op": "*", "shape": "exponential", "days": 30 / math.log(2),
             "weight": 0.1, "rerank": True},
            {"signal": "reinforcement", "op": "*", "rerank": True},
            {"signal": "entity", "op": "*", "rerank": True},
        ],
        "k": 10,
    },
    "memd": {
        "fusion": "sum",
        "legs": {"topic": 1.0, "lexical": 1.0, "vector": 0.8},
        "cosine_floor": 0.2,
        "weigh_words": True,
        "learned": {},
        "lexical": {"model": "likelihood", "title_weight": 2.0},
        "steps": [
            {"signal": "context", "previous": 0.2, "next": 0.1, "session": 0.2},
            {"signal": "intent", "weight": 0.15},
            {"signal": "pin", "weight": 0.05},
            {"signal": "recency", "op": "*", "shape": "hyperbolic", "days": 365.0, "weight": 0.4},
        ],
        # Recency multiplies what matches: added to it, the newest memory would lead whatever it says.
        "when_recent": {
            "steps": [
                {"signal": "context", "previous": 0.2, "next": 0.1, "session": 0.2},
                {"signal": "intent", "weight": 0.15},
                {"signal": "recency", "op": "*", "shape": "hyperbolic", "days": 90.0, "weight": 0.6},
            ],
        },
        "diversity": {"per_episode": 1, "alike": 0.7},
    },
}  # fmt: skip
"""The recipes that come with memd. Five are published ones, to be measured and not improved: they keep
their faults. All of them use memd's retrievers, so words are joined by OR and filters come before the
pool is cut, also where the original did neither."""


def resolve_profile(name: str, own: Mapping[str, Mapping[str, Any]]) -> Profile:
    """The profile of this name; BadRequest if there is none, ConfigError if it is not valid."""
    try:
        return Profile.model_validate(_merge_bases(name, own, ()))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in ("profiles", name, *first["loc"]))
        raise ConfigError(f"{key}: {first['msg']}") from error


def resolve_profiles(default: str, own: Mapping[str, Mapping[str, Any]]) -> dict[str, Profile]:
    """Every profile, so that a mistake shows at the start; ConfigError if `default` is none of them."""
    found = {name: resolve_profile(name, own) for name in (*BUILT_IN, *own)}
    if default not in found:
        raise ConfigError(f"recall.profile: {_explain_unknown_profile(default, own)}")
    return found


def _explain_unknown_profile(name: str, own: Mapping[str, Mapping[str, Any]]) -> str:
    known = ", ".join(sorted({*BUILT_IN, *own}))
    return f"there is no profile {name!r}; there are {known}"


def _merge_bases(
    name: str, own: Mapping[str, Mapping[str, Any]], via: tuple[str, ...]
) -> dict[str, Any]:
    if name in via:
        raise ConfigError(
            f"profiles.{via[0]}.base: the profiles form a circle: {' → '.join((*via, name))}"
        )
    data = own.get(name) or BUILT_IN.get(name)
    if data is None:
        if via:
            raise ConfigError(f"profiles.{via[-1]}.base: {_explain_unknown_profile(name, own)}")
        raise BadRequest(f"profile: {_explain_unknown_profile(name, own)}")
    change = dict(data)
    base = change.pop("base", None)
    return (
        change
        if base is None
        else overlay_tables(_merge_bases(str(base), own, (*via, name)), change)
    )


def overlay_tables(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` overlaid with `change`: tables are merged, everything else is replaced."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = overlay_tables(old, value) if both else value  # type: ignore[arg-type]  # just tested
    return result


def adapt_to_recent(profile: Profile) -> Profile:
    """The profile as it is when the question asks for the latest."""
    if not profile.when_recent:
        return profile
    return Profile.model_validate(overlay_tables(profile.model_dump(), profile.when_recent))


DAY_MS = 86_400_000

Floats = NDArray[np.float64]


def ages_in_days(at: NDArray[np.int64], now: int) -> Floats:
    """Return the ages of events of `at` (UTC ms) at `now`, in days, never below 0.

    An event that a wrong clock dated far ahead is as old as it lies ahead: else it would be the newest
    for years.
    """
    elapsed = now - at
    ages = np.where(elapsed <= -CLOCK_SKEW_MAX_MS, -elapsed, np.maximum(elapsed, 0))
    return np.asarray(ages / DAY_MS, np.float64)


def exponential_decay(age_days: Floats, tau_days: float) -> Floats:
    """exp(−age/τ): siftcoder's decay. τ = 7 d: 0.867 after a day, 0.0138 after thirty."""
    return np.exp(-age_days / tau_days)


def hyperbolic_decay(age_days: Floats, half_days: float) -> Floats:
    """1/(1 + age/half): covalence's recency. half = 365 d: 0.5 after a year, 0.33 after two."""
    return np.asarray(1.0 / (1.0 + age_days / half_days), dtype=np.float64)


def logarithmic_decay(age_days: Floats) -> Floats:
    """1 − 0.1 · log10(1 + age in days): 0.9 after nine days, 0.74 after a year."""
    return np.asarray(1.0 - 0.1 * np.log10(1.0 + age_days), dtype=np.float64)


def tier_share(tier_codes: NDArray[np.int8], rrf_k: int) -> Floats:
    """1/(k + tier), tier counted from 1: core, file, then what agents remembered or memd captured."""
    tier = np.minimum(tier_codes.astype(np.int64) + 1, 3)
    return np.asarray(1.0 / (rrf_k + tier), dtype=np.float64)


def quality_factor(quality: NDArray[Any]) -> Floats:
    """0.7 + 0.6 · quality: ClawMem's."""
    return 0.7 + 0.6 * quality.astype(np.float64)


def length_factor(body_characters: NDArray[Any]) -> Floats:
    """1/(1 + ½ · log2(max(length/500, 1))), at least 0.3: ClawMem's."""
    penalty = 1.0 / (1.0 + 0.5 * np.log2(np.maximum(body_characters / 500.0, 1.0)))
    return np.asarray(np.maximum(penalty, 0.3), dtype=np.float64)


def frequency_factor(revisions: NDArray[Any], duplicates: NDArray[Any]) -> Floats:
    """1 + min(0.10, 0.03 · ln(1 + 2(revisions − 1) + (duplicates − 1))): ClawMem's."""
    again = revisions.astype(np.int64) - 1
    signal = np.maximum(2 * again + (duplicates.astype(np.int64) - 1), 0)
    return np.asarray(1.0 + np.minimum(0.10, 0.03 * np.log1p(signal)), dtype=np.float64)


def half_life_decay(age_days: Floats, half_lives: Floats) -> Floats:
    """2^(−age/half-life): ClawMem's recency; always 1 where the half-life is infinite."""
    return np.exp2(-age_days / half_lives)


def half_life_stretch(uses: Floats, unused_days: Floats) -> Floats:
    """Return the factor by which use prolongs a half-life: ClawMem's, at most 3.

    1 + 0.3 · ln(1 + uses · freshness); freshness falls from 1 to 0 in a line over 90 days without use.
    """
    freshness = np.maximum(1.0 - unused_days / 90.0, 0.0)
    return np.minimum(1.0 + 0.3 * np.log1p(uses * freshness), 3.0)


def coactivation_factor(counts: Floats) -> Floats:
    """1 + min(n/10, 0.15): ClawMem's, n how often a memory was returned with the best ones."""
    return 1.0 + np.minimum(counts / 10.0, 0.15)


def title_has_all_words(titles: Sequence[str], query_words: Sequence[str]) -> Floats:
    """1 if every word of the query is a substring of the title, else 0: Covalence's; titles folded."""
    if not query_words:
        return np.zeros(len(titles))
    found = [all(word in title for word in query_words) for title in titles]
    return np.array(found, dtype=np.float64)


def reinforcement(counts: Floats) -> Floats:
    """log2(1 + n): MemU's, n how often it was said or recalled; 1 for a memory that was said once."""
    return np.log2(1.0 + counts)


def entity_factor(named: Floats) -> Floats:
    """1.3 if the question names an entity of the memory, else 1: MemU's 1 + 0.3 · bond, bond 1."""
    return 1.0 + 0.3 * named


# ── memd's kinds in the words of the published systems ───────────────────────────────────────────


_NEVER = math.inf
HALF_LIVES: Mapping[str, float] = {
    "decision": _NEVER, "preference": _NEVER, "antipattern": _NEVER, "hub": _NEVER, "project": 120.0,
    "research": 90.0, "problem": 60.0, "milestone": 60.0, "note": 60.0, "conversation": 45.0,
    "progress": 45.0, "handoff": 30.0,
}  # fmt: skip
"""ClawMem's types and their half-lives in days, as the seed published them."""

LEVELS: Mapping[str, float] = {"routine": 3, "noteworthy": 5, "important": 8, "core": 10}
"""MemU's levels on its scale from 1 to 10. The publication does not say which level is where, only that
an important fact has 8 and an unrated one gets 5."""

KIND_MAPPINGS: Mapping[Kind, tuple[str, str]] = {
    Kind.DECISION: ("decision", "important"),  # the same word, and it governs later work
    Kind.FIX: ("problem", "noteworthy"),  # ClawMem files a bug with its solution as a problem
    Kind.FAILURE: ("problem", "noteworthy"),  # only a rule against it is an antipattern
    Kind.CHANGE: ("progress", "routine"),  # finished work, overtaken by the next
    Kind.DISCOVERY: ("research", "noteworthy"),  # found out by looking
    Kind.PREFERENCE: ("preference", "important"),  # the same word
    Kind.INSTRUCTION: ("preference", "important"),  # a standing wish, until it is replaced
    Kind.FACT: ("hub", "noteworthy"),  # stated on purpose, to be looked up at any time
    Kind.TASK: ("progress", "routine"),  # an open end; done or stale after some weeks
    Kind.NOTE: ("note", "noteworthy"),  # the same word, and the default of both
    Kind.SESSION: ("handoff", "routine"),  # ClawMem writes one when a session stops
}
"""memd's kinds → the nearest type of ClawMem's, and the nearest level of MemU's."""


def half_lives() -> Floats:
    """ClawMem's half-life in days by kind code; infinite for what never fades."""
    return _index_by_kind_code({k: HALF_LIVES[like] for k, (like, _) in KIND_MAPPINGS.items()})


def significances() -> Floats:
    """MemU's significance by kind code, 1 to 10."""
    return _index_by_kind_code({k: LEVELS[level] for k, (_, level) in KIND_MAPPINGS.items()})


def _index_by_kind_code(values: Mapping[Kind, float]) -> Floats:
    row = np.zeros(len(KIND_CODES))
    for kind, value in values.items():
        row[KIND_CODES[kind.value]] = value
    return row
