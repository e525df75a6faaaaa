"""Edit a memory by the user's hand: a new version, which the user judges to supersede the old one.

The old version keeps its number and stays behind the new one, where `mem_why` shows it and an undone judgment brings
it back. The new version keeps kind, topic key, tags, files, time and session: an edit corrects how something is
said, not when it happened.
"""

from dataclasses import dataclass

from memd.belief import supersede
from memd.consolidate.judgments import NewJudgment, apply_judgment
from memd.errors import BadRequest, UnknownId
from memd.models import SETTINGS_NODE, Authority, Draft, EdgeType, Stance, Summary, Tier
from memd.store import ledger, links, summaries
from memd.store.database import Connection
from memd.store.judgments import initial_confidence
from memd.text import digest

EDITED_RULE = "edited"
_REASON = "edited by hand"


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """New words for a memory; an empty title or text leaves the present one."""

    id: int
    title: str = ""
    text: str = ""
    reason: str = ""


def edit_memory(tx: Connection, edit: MemoryEdit, now: int) -> int:
    """Write the new version; its id. UnknownId, or BadRequest if it is hidden or says nothing else."""
    old = summaries.get_summary(tx, edit.id)
    if old is None:
        raise UnknownId(f"there is no memory #{edit.id}")
    if old.superseded_by is not None:
        raise BadRequest(f"#{old.id} is hidden by #{old.superseded_by}: edit that one")
    title, text = edit.title or old.title, edit.text or old.body
    if (title, text) == (old.title, old.body):
        raise BadRequest(f"#{old.id} says this already; nothing was changed")
    number = _write_version(tx, old, title, text, now)
    _copy_edges(tx, old.id, number, now)
    pinned_by = old.pinned_by
    if pinned_by is not None:
        supersede.unpin(tx, old, Authority.USER_HAND)
    reason = f"{_REASON}: {edit.reason}" if edit.reason else _REASON
    judgment = NewJudgment(number, old.id, Stance.SUPERSEDES, reason, "user")
    apply_judgment(tx, judgment, now)
    new = summaries.get_summary(tx, number)
    if pinned_by is not None and new is not None:
        supersede.pin(tx, new, pinned_by, now)
    return number


def _write_version(tx: Connection, old: Summary, title: str, text: str, now: int) -> int:
    uid = digest(old.uid, EDITED_RULE, title, text)
    ledger.remove_forgotten(tx, uid)
    if summaries.summary_by_uid(tx, uid) is not None:
        # The same edit was made and undone before.
        uid = digest(uid, str(now))
    owner = summaries.SummaryOwner(old.project_id, old.session_id, "user")
    draft = Draft(
        slot="", kind=old.kind, title=title, body=text, at=old.at, rule=EDITED_RULE, sources=(),
        tier=Tier.AGENT, tags=old.tags, files=old.files, topic_key=old.topic_key,
        expires_at=old.expires_at, confidence=max(old.confidence, initial_confidence("user")),
        quality=old.quality, authority=Authority.USER_HAND,
    )  # fmt: skip
    number, _ = summaries.put_summary(tx, uid, draft, owner, now)
    return number


def _copy_edges(tx: Connection, old: int, new: int, now: int) -> None:
    """Let the new version come from the same events, with their quotes, and name the same files."""
    kept = {EdgeType.DERIVES_FROM, EdgeType.REFERENCES, EdgeType.EDITS}
    links.add_edges(
        tx,
        [
            links.NewEdge(
                "summary",
                str(new),
                edge.type,
                edge.to_kind,
                edge.to_id,
                edge.rule,
                now,
                edge.confidence,
                edge.detail,
            )
            for edge in links.edges_at(tx, "summary", str(old))
            if edge.type in kept
            and (edge.from_kind, edge.from_id) == ("summary", str(old))
            # What the edits of its turn have set, the new text may say otherwise.
            and edge.to_kind not in {"summary", SETTINGS_NODE}
        ],
    )
