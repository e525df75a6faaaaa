"""The uids of what an episode yields: one for each slot, and one beside it. Pure."""

from memd.models import Session
from memd.text import digest


def slot_uid(session: Session, episode: str, slot: str) -> str:
    """The uid of what an episode yields in a slot."""
    return digest(session.uid, episode, slot)


def uid_beside(uid: str) -> str:
    """The uid for a slot whose own uid belongs to something that stays."""
    return digest(uid, "beside")
