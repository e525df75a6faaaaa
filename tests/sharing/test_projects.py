"""Projects whose directories lie elsewhere on another machine."""

from memd.capture.project import normalize_remote
from memd.consolidate.projects import merge_projects
from memd.sharing.syncer import SameRemote
from tests.tables import every_row


def make_clone(folder, url):
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(
        f'[core]\n\tbare = false\n[remote "fork"]\n\turl = git@example.org:fork/x.git\n[remote "origin"]\n\turl = {url}\n'
    )
    return str(folder)


async def test_clones_of_one_repository_are_proposed_and_become_one_project_on_every_machine(
    make_vault, tmp_path
):
    desk, laptop = make_vault("desk"), make_vault("laptop")
    here = make_clone(tmp_path / "desk-src" / "ledger", "git@github.com:me/ledger.git")
    there = make_clone(tmp_path / "laptop-src" / "ledger", "https://me:token@GitHub.com/me/ledger")
    desk.remember("The port is 8080", here)
    laptop.remember("Deploy on Fridays", there)
    await desk.sync()
    report = await laptop.sync()
    assert report.same == [SameRemote(*sorted((here, there)), "github.com/me/ledger")]
    laptop.db.write_now(lambda tx: merge_projects(tx, here, there, laptop.clock()))
    assert (await laptop.sync()).same == []
    assert (await desk.sync()).same == []
    for vault in (desk, laptop):
        count = vault.db.read_now(
            lambda tx: tx.execute(
                "SELECT count(DISTINCT project_id), count(*) FROM summaries"
            ).fetchone()
        )
        assert count == (1, 2)
    for vault in (laptop, desk):
        again = await vault.sync()
        assert (again.sent, again.received) == (0, {})


@every_row(
    ("url", "name"),
    [
        ("git@github.com:me/x.git", "github.com/me/x"),
        ("ssh://git@github.com:22/me/x.git", "github.com/me/x"),
        ("https://user:secret@GITHUB.com/me/X/", "github.com/me/x"),
        ("git://github.com/me/x", "github.com/me/x"),
        ("file:///srv/git/x.git", "/srv/git/x"),
    ],
)
def test_a_remote_is_one_name_however_it_is_reached(url, name):
    assert normalize_remote(url) == name


async def test_a_remote_that_is_a_path_of_this_machine_is_told_to_no_other(make_vault, tmp_path):
    vault = make_vault("desk")
    for number, url in enumerate(("/srv/git/x.git", "file:///srv/git/x.git", "../x")):
        assert vault.syncer.find_remote(make_clone(tmp_path / str(number), url)) == ""
