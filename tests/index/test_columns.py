import json
from dataclasses import replace

import numpy as np

from memd.index.columns import KIND_CODES, NEVER, TIER_CODES, Columns
from memd.store import IndexRow, StoredPassage


def stored(number, summary_id, seq=0, length=5):
    return StoredPassage(number, summary_id, seq, length, b"")


def facts(summary_id, **more):
    plain = IndexRow(
        summary_id,
        1,
        0,
        "note",
        "agent",
        "agent",
        1_000,
        None,
        False,
        False,
        0.5,
        0.25,
        1,
        1,
        8,
        20,
        (),
    )
    return replace(plain, **more)


def columns(count):
    made = Columns()
    made.append([stored(n, n * 10) for n in range(1, count + 1)])
    return made


def test_what_is_known_of_a_summary_is_written_in_every_row_of_it():
    made = Columns()
    made.append([stored(1, 10), stored(2, 20), stored(3, 20, seq=1)])
    made.update(
        [facts(20, kind="fix", tier="core", at=77, expires_at=99, is_pinned=True, is_retired=True,
               session_id=4, tags=("a", "b"), revisions=3, source="user")]
    )  # fmt: skip
    assert made.kind[1:].tolist() == [KIND_CODES["fix"]] * 2
    assert made.tier[1:].tolist() == [TIER_CODES["core"]] * 2
    assert made.at.tolist() == [0, 77, 77]
    assert made.expires_at.tolist() == [NEVER, 99, 99]
    assert made.pinned.tolist() == made.retired.tolist() == [False, True, True]
    assert made.confidence[1] == np.float32(0.25)
    assert made.revisions.tolist() == [0, 3, 3]
    assert made.source_names[made.source[1]] == "user"
    assert made.with_tags(["a"]).tolist() == [False, True, True]
    assert made.with_tags(["a", "c"]).tolist() == [False, False, False]
    assert made.with_tags([]).all()


def test_an_unknown_source_has_a_code_that_no_row_has():
    made = columns(2)
    made.update([facts(10, source="user")])
    assert made.from_source("user").tolist() == [True] * made.n
    assert not made.from_source("nobody").any()


def test_compacting_keeps_the_living_in_order_and_says_where_they_went():
    made = columns(400)
    made.update([facts(n * 10, at=n) for n in range(1, 401)])
    made.retire(np.arange(0, 400, 4))
    assert not made.is_sparse
    made.retire(np.arange(1, 400, 4))
    assert made.is_sparse
    mapping = made.compact()
    assert made.n == 200
    assert not made.is_sparse
    assert made.passage_id[:3].tolist() == made.at[:3].tolist() == [3, 4, 7]
    assert mapping[:8].tolist() == [-1, -1, 0, 1, -1, -1, 2, 3]
    assert made.append([stored(401, 1)]).tolist() == [200]


def test_rows_of_many_summaries_are_found_in_any_number_of_them():
    made = Columns()
    made.append([stored(n, 1 + n % 3_000) for n in range(10_000)])
    assert made.rows_of(1).tolist() == [0, 3_000, 6_000, 9_000]
    made.append([stored(10_000, 1), stored(10_001, 9_999)])
    made.retire(np.array([3_000]))
    assert made.rows_of_any([1, 9_999, 7, 123_456]).tolist() == [
        0, 6, 3_006, 6_000, 6_006, 9_000, 9_006, 10_000, 10_001,
    ]  # fmt: skip
    assert made.rows_of_any([]).tolist() == []


def test_what_is_beside_a_row_follows_every_change_of_its_session():
    made = Columns()
    made.append([stored(n, n) for n in range(1, 5)])
    made.update([facts(n, session_id=1, at=10 - n) for n in range(1, 5)])
    every = np.arange(4)
    assert [side.tolist() for side in made.neighbours(every)] == [[1, 2, 3, -1], [-1, 0, 1, 2]]
    made.update([facts(3, session_id=2, at=1)])
    assert [side.tolist() for side in made.neighbours(every)] == [[1, 3, -1, -1], [-1, 0, -1, 1]]
    made.retire(np.array([1]))
    assert [side.tolist() for side in made.neighbours(every)] == [[3, -1, -1, -1], [-1, -1, -1, 0]]
    made.append([stored(9, 9)])
    made.update([facts(9, session_id=1, at=100)])
    assert made.neighbours(np.array([0, 4]))[0].tolist() == [3, 0]
    made.compact()
    assert [side.tolist() for side in made.neighbours(np.arange(4))] == [
        [2, -1, -1, 0],
        [3, -1, 0, -1],
    ]


def test_what_is_saved_and_mapped_is_as_if_it_had_never_been_saved():
    def change(one):
        one.append([stored(101, 5), stored(102, 77)])
        one.update([facts(77, source="new", tags=("z", "b")), facts(50, tags=("b",))])
        one.retire(np.array([3]))

    made = columns(60)
    made.update(
        [
            facts(n * 10, at=n, session_id=n // 5, source=f"s{n % 3}", tags=("a",))
            for n in range(1, 61)
        ]
    )
    made.retire(np.arange(20))
    parts = {name: np.append(part, np.zeros(2, part.dtype)) for name, part in made.parts().items()}
    mapped = Columns()
    mapped.restore(60, parts, json.loads(json.dumps(made.labels())))
    for one in (made, mapped):
        change(one)
    assert parts["summary_id"][-1] == 77, "new rows go into the room behind the others"
    for one in (made, mapped):
        one.compact()
    assert made.n == mapped.n
    assert made.labels() == mapped.labels()
    for name, part in made.parts().items():
        assert part.tolist() == mapped.parts()[name].tolist()
    assert made.rows_of(77).tolist() == mapped.rows_of(77).tolist()
    assert mapped.from_source("new").tolist() == made.from_source("new").tolist()
