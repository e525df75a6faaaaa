"""An act of the story: rules of the user's are told when they are about to be broken, and kept where he enforces them."""

from typing import Any

from e2e.conversation import Scene, Story
from e2e.scripted_api import Say, Use, texts

PUSH = "git -C . push -f origin main"
FORCED = "Never run `git push --force`."
TESTED = "Run `python3 -B test_ledger.py` before you say that you are done."
FIXED = "Don't touch `vendor/`."


def keeping_rules(story: Story) -> None:
    """Broken rules with and without enforcement; a call that no rule is about asks nothing."""
    check = story.report.check
    push, done = _remember(story, FORCED), _remember(story, TESTED)
    edit = Use("Write", {"file_path": str(story.claude.project / "notes.py"), "content": "A = 1\n"})
    scene = story.ask(
        "Push it.",
        Use("Bash", {"command": 'echo "never git push --force"', "description": "Say it"}),
        Use("Bash", {"command": PUSH, "description": "Push"}),
        Use("Bash", {"command": PUSH, "description": "Push again"}),
        edit,
        Say("Done."),
        Use("Bash", {"command": "python3 -B test_ledger.py", "description": "Test"}),
        Say("Tested, and done."),
    )
    told = _told(scene)
    check("a rule is told once before the call that breaks it", _count(told, push) == 1, told)
    said = "\n".join(texts(scene.requests[-1]))
    check("  it reaches the model", f"#{push}" in said and FORCED.strip(".") in said, said[-2_000:])
    check(
        "  and the call is made",
        not any("denied" in text for _, text in scene.results),
        scene.results,
    )
    check(
        "the end waits once for the command that the rule names", "was not run since" in said, told
    )

    vendor = _remember(story, FIXED)
    for number in (push, vendor):
        enforced = story.memd.run("enforce", str(number))
        check(f"memd enforce {number}", "enforced now" in enforced.stdout, enforced)
    scene = story.ask(
        "Push it by force.",
        Use("Bash", {"command": PUSH, "description": "Push"}),
        Use("Bash", {"command": f"cd . && {PUSH}", "description": "Push again"}),
        Use("Bash", {"command": "mkdir -p vendor && echo 1 > vendor/x", "description": "Vendor"}),
        Use("Bash", {"command": "git log --oneline -1", "description": "Look"}),
        Say("It was refused."),
    )
    outcome = [is_error for is_error, _ in scene.results]
    check(
        "what is enforced is refused each time, the rest is not",
        outcome == [True] * 3 + [False],
        scene.results,
    )
    reasons = [text for _, text in scene.results[:2]]
    check("  with the rule as the reason", all(f"#{push}" in text for text in reasons), reasons)
    is_left = not (story.claude.project / "vendor").exists()
    check("  and nothing is written", is_left, scene.results)

    story.memd.run("stop")
    scene = story.ask("Look.", Use("Bash", {"command": f"{PUSH} || true", "description": "Push"}), Say("So."), bare=True)  # fmt: skip
    is_passed = [is_error for is_error, _ in scene.results] == [False]
    started = story.memd.status().get("running")
    check(
        f"without a daemon at its start a session is not held up (started meanwhile: {started})",
        is_passed or started,
        scene.results,
    )
    story.memd.run("start")
    for number in (push, vendor, done):
        story.memd.run("forget", str(number), "--yes")


def _remember(story: Story, rule: str) -> int:
    stored: Any = story.memd.json_of("remember", rule, "--kind", "instruction")
    return int(stored["id"])


def _told(scene: Scene) -> list[str]:
    return [hook.context for hook in scene.run.hooks if hook.event == "PreToolUse" and hook.context]


def _count(told: list[str], number: int) -> int:
    return sum(f"#{number} " in text for text in told)
