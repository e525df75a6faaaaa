"""The table of contents: every address, and every action, with the function that answers it."""

from collections.abc import Callable, Mapping

from memd.viewer import (
    activity,
    administering,
    editing,
    erasing,
    health,
    home,
    inbox,
    memory,
    search,
    sessions,
    timeline,
)
from memd.viewer.forms import Fields
from memd.viewer.html import Markup
from memd.viewer.visit import Json, Page, Visit

PAGES: Mapping[str, Callable[[Visit], Page]] = {
    "/": home.show_home,
    "/inbox": inbox.show_inbox,
    "/rejected": inbox.show_rejected,
    "/memories": home.show_memories,
    "/search": search.show_search,
    "/whynot": search.show_why_not,
    "/timeline": timeline.show_timeline,
    "/memory/{id}": memory.show_memory,
    "/memory/{id}/forget": erasing.show_forget,
    "/memory/{id}/edit": editing.show_edit,
    "/memory/{id}/take-back": editing.show_undo_edit,
    "/memory/{id}/pin": editing.show_pin,
    "/memory/{id}/judge": editing.show_choose_other,
    "/judge": editing.show_judge,
    "/judge/{id}/{other}": editing.show_judge,
    "/node": memory.show_node,
    "/sessions": sessions.show_sessions,
    "/session/{key}": sessions.show_session,
    "/session/{key}/forget": erasing.show_forget_session,
    "/context": sessions.show_context,
    "/projects": health.show_projects,
    "/project/rename": administering.show_rename,
    "/project/merge": administering.show_merge,
    "/unmerge": administering.show_unmerge,
    "/project/switch": administering.show_switch,
    "/project": health.show_project,
    "/health": health.show_health,
    "/run/{run}": administering.show_undo_run,
    "/forget": erasing.show_forget_words,
    "/scrub": erasing.show_scrub,
}
"""Path → what it shows."""
PARTS: Mapping[str, Callable[[Visit], Markup]] = {
    "/part/activity": activity.show_recent_activity,
    "/part/doctor": health.write_findings,
}
"""Path → what a page fetches after it is shown, because it takes longer."""
ACTIONS: Mapping[str, Callable[[Visit, Fields], Json]] = {
    "forget-preview": erasing.preview_forget_words,
    "forget": erasing.forget,
    "scrub-preview": erasing.preview_scrub,
    "scrub": erasing.scrub,
    "review": inbox.review,
    "edit": editing.edit,
    "take-back": editing.take_back,
    "pin": editing.pin,
    "judge": editing.judge,
    "rename": administering.rename,
    "merge": administering.merge,
    "unmerge": administering.unmerge,
    "switch": administering.switch,
    "undo": administering.undo_run,
}
"""Name of an action → what does it. It answers with `say` and `go`, or with `html`."""
