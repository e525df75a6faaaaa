"""A sample of the memories, indexed anew and compared with what is stored: whether index equals truth.

It finds what no count finds: an index made with other settings, or by other rules of cutting words.
Not here: the counts (store/integrity.py), making it right (indexer.py).
"""

from memd.index.chunking import passages
from memd.models import Finding, Summary
from memd.store import sampling, summaries
from memd.store.database import Connection

SAMPLE = 40
"""Memories: enough to see what concerns all, and done in a moment."""


def compare(tx: Connection, tokens_max: int, limit: int = SAMPLE) -> Finding:
    """Compute the passages of up to `limit` memories and say how many are stored otherwise."""
    chosen = summaries.by_ids(tx, sampling.sampled(tx, limit))
    stale = [
        number for number, one in sorted(chosen.items()) if not _is_cut_so(tx, one, tokens_max)
    ]
    if not stale:
        return Finding("sample", "ok", f"{len(chosen)} memories indexed anew come out the same")
    told = ", ".join(f"#{number}" for number in stale[:5])
    words = f"{len(stale)} of {len(chosen)} memories are indexed otherwise than now: {told}"
    remedy = "`memd doctor --fix` or `memd reindex` computes it anew"
    return Finding("sample", "problem", words, remedy, fixable=True)


def _is_cut_so(tx: Connection, summary: Summary, tokens_max: int) -> bool:
    stored = [
        (one.start, one.stop, one.length, dict(one.terms))
        for one in sampling.indexed(tx, summary.id)
    ]
    return stored == [
        (
            one.start,
            one.stop,
            one.length,
            {p.term: (p.in_title, p.in_body) for p in one.postings},
        )
        for one in passages(summary, tokens_max=tokens_max)
    ]
