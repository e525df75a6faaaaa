"""What a path alone says of a worktree."""

from memd.directories import read_worktree_path
from tests.tables import every_row

TOLD = [
    # path, top, main or repository
    ("/src/shop/.worktrees/3", "/src/shop/.worktrees/3", "/src/shop"),
    ("/src/shop/.worktrees/3/lib/a", "/src/shop/.worktrees/3", "/src/shop"),
    ("/src/shop/.trees/fix", "/src/shop/.trees/fix", "/src/shop"),
    ("/src/shop/.claude/worktrees/ent-95-test/x", "/src/shop/.claude/worktrees/ent-95-test", "/src/shop"),
    ("/src/shop/.gemini/worktrees/a", "/src/shop/.gemini/worktrees/a", "/src/shop"),
    ("/src/shop/.codex/worktrees/a", "/src/shop/.codex/worktrees/a", "/src/shop"),
    ("/src/shop/.conductor/lima", "/src/shop/.conductor/lima", "/src/shop"),
    ("/src/shop/.worktrees/3/.claude/worktrees/x", "/src/shop/.worktrees/3", "/src/shop"),
    (r"D:\src\shop\.worktrees\3", r"D:\src\shop\.worktrees\3", r"D:\src\shop"),
    (r"D:\src\shop\.claude\worktrees\a\lib", r"D:\src\shop\.claude\worktrees\a", r"D:\src\shop"),
    (r"D:\src\shop-worktrees\fix\lib", r"D:\src\shop-worktrees\fix", r"D:\src\shop"),
    ("/src/shop-worktrees/fix", "/src/shop-worktrees/fix", "/src/shop"),
    ("/src/shop.worktrees/fix/lib", "/src/shop.worktrees/fix", "/src/shop"),
    ("/src/shop__worktrees/fix", "/src/shop__worktrees/fix", "/src/shop"),
    ("/src/shop/worktrees/fix", "/src/shop/worktrees/fix", "/src/shop"),
    ("/src/wt/shop/fix/lib", "/src/wt/shop/fix", "/src/shop"),
]  # fmt: skip


@every_row(("path", "top", "main"), TOLD)
def test_a_layout_tells_the_worktree_and_its_repository(path, top, main):
    found = read_worktree_path(path)
    assert (found.top, found.main) == (top, main)


@every_row(
    ("path", "repository"),
    [
        ("/home/ann/.codex/worktrees/4ee0/shop/lib", "shop"),
        ("/Users/ann/.cursor/worktrees/shop/ab12", "shop"),
        ("/Users/ann/.superset/worktrees/shop/feature", "shop"),
        ("/Users/ann/conductor/workspaces/shop/lima", "shop"),
        ("/data/vibe-kanban/worktrees/1f-fix/shop", "shop"),
        (r"C:\Users\ann\.codex\worktrees\4ee0\shop", "shop"),
    ],
)
def test_a_folder_of_a_tool_tells_only_the_name_of_the_repository(path, repository):
    found = read_worktree_path(path)
    assert (found.repository, found.main, found.is_certain) == (repository, None, False)


@every_row(
    "path",
    [
        "/src/worktrees", "/home/ann/worktrees/x", "/src/my-worktrees", "/src/shop/.worktrees", "/src/shop/lib",
        "/home/ann/.worktrees/x", "/home/ann/.claude/worktrees/x", "/", "", "worktrees", r"D:\src\worktrees",
    ],
)  # fmt: skip
def test_what_only_looks_alike_tells_nothing(path):
    assert read_worktree_path(path) is None
