from dataclasses import fields

import pytest

from memd import recall
from memd.recall import ScorePart, apply_parts
from tests.tables import every_row


def test_a_score_is_its_parts_in_order():
    # (0.5 + 0.3) * 2 = 1.6, capped at 1
    assert (
        apply_parts(
            [
                ScorePart("a", 0.5),
                ScorePart("b", 0.3),
                ScorePart("c", 2.0, "*"),
                ScorePart("d", 1.0, "<"),
            ]
        )
        == 1.0
    )
    assert apply_parts(
        [ScorePart("a", 0.5), ScorePart("c", 2.0, "*"), ScorePart("b", 0.3)]
    ) == pytest.approx(1.3)
    assert apply_parts([]) == 0.0


JSON_FIELDS = {
    recall.ScorePart: "name value op",
    recall.Hit: (
        "summary project session_title snippet score parts channels lexical_rank vector_rank topic_rank cosine recency coverage older_value replaces replaced_by alike contradiction said_since"
    ),
    recall.TracedCandidate: "summary_id title score parts ranks cosine terms verdict",
    recall.Turn: "event_id session_title role at snippet rank distance",
    recall.Answer: (
        "hits profile space took_ms verdict reason candidates suppressed degraded notes trace turns contradicted"
    ),
    recall.TimelineRow: ("summary session_title is_pivot gap_ms begins_session contradicted_by"),
    recall.Timeline: "rows pivot_at more_before more_after is_span",
    recall.TranscriptPosition: "transcript session line prompt tool_use",
    recall.SourceEvent: "event quote position",
    recall.SupersessionLink: "supersession other is_newer",
    recall.JudgmentLink: "judgment other",
    recall.PastInjection: "session session_title moment at reason",
    recall.UsageHistory: "count last_at shown sessions latest",
    recall.Why: (
        "node summary verdict sources relations edges titles rule access judgments contradicted_by values checks copies"
    ),
}
"""What `--json` and the control calls print of each answer type."""


@every_row("answer_type", JSON_FIELDS)
def test_the_field_names_that_json_answers_have_are_a_contract(answer_type):
    # What the verdict is made of, and what was lifted above what (that is in the scores' parts), is in no JSON.
    hidden = {"evidence", "listed", "precedence"}
    names = [one.name for one in fields(answer_type) if one.name not in hidden]
    assert " ".join(names) == JSON_FIELDS[answer_type]
