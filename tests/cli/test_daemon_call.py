import pytest

from memd.cli import daemon_call
from memd.errors import Unreachable
from tests.tables import every_row


@every_row("text", ["12", "#12"])
def test_an_id_may_have_a_hash(text):
    assert daemon_call.read_ids([text]) == [12]


def test_an_invalid_id_is_refused_on_one_line(capsys):
    with pytest.raises(SystemExit) as caught:
        daemon_call.read_ids(["12", "twelve"])
    assert caught.value.code == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "'twelve'" in err


def test_a_call_without_a_daemon_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMD_HOME", str(tmp_path))
    with pytest.raises(Unreachable):
        daemon_call.call("memd/ping")
    assert not daemon_call.answers()


def test_advised_commands_name_the_selected_vault(monkeypatch):
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    assert daemon_call.format_command("pin 12") == "memd pin 12"
    assert daemon_call.insert_vault("try `memd start`") == "try `memd start`"
    monkeypatch.setenv("MEMD_VAULT", "work")
    assert daemon_call.format_command("pin 12") == "memd --vault work pin 12"
    assert daemon_call.insert_vault("`memd a` or `memd b`") == (
        "`memd --vault work a` or `memd --vault work b`"
    )


def test_messages_name_the_selected_vault(monkeypatch, capsys):
    monkeypatch.setenv("MEMD_VAULT", "work")
    with pytest.raises(SystemExit):
        daemon_call.fail("name a file, or `memd restore --salvage`")
    assert (
        capsys.readouterr().err == "memd: name a file, or `memd --vault work restore --salvage`\n"
    )


def test_a_deleted_working_directory_is_none(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert daemon_call.current_directory() is None
