import plistlib
import sys
from pathlib import Path

import pytest

from memd.daemon import supervisor
from memd.installers import service
from memd.installers.file_changes import FileChange, Host, InstallPlan
from memd.installers.service import (
    DaemonUnit,
    find_author,
    format_launchd_agent,
    format_service_unit,
    sign,
)

TEXT = "[Unit]\nDescription=x\n"


@pytest.fixture
def host(tmp_path):
    return Host({"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, "/py", tmp_path, "linux")


def with_vault(host, name, **more):
    return Host({**host.environ, "MEMD_VAULT": name, **more}, "/py", host.package, "linux")


def test_the_daemon_of_another_vault_has_its_own_name(host):
    assert service.daemon_name("memd", host, "-") == "memd"
    assert service.daemon_name("memd", with_vault(host, "work"), "-") == "memd-work"
    assert service.stop_command(host) == ("/py", "-P", "-m", "memd", "stop")
    assert service.stop_command(with_vault(host, "work"))[4:] == ("--vault", "work", "stop")


def test_the_daemon_gets_only_variables_that_its_manager_does_not_set(host, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    custom = with_vault(host, "", XDG_RUNTIME_DIR="/run/user/7", MEMD_HOME="here")
    assert service.daemon_environment(custom, "/run/user/7") == {
        "MEMD_HOME": str(tmp_path / "here")
    }
    assert service.daemon_environment(custom, None)["XDG_RUNTIME_DIR"] == "/run/user/7"


@pytest.mark.parametrize(
    ("found", "is_generated", "notes"),
    [
        (None, False, ()),
        (sign("[Unit]\n"), True, ()),
        (sign("[Unit]\n") + "#\n", False, ("was edited; a backup is kept beside it",)),
        ("[Unit]\n", False, ("was not written by memd; a backup is kept beside it",)),
    ],
)
def test_only_a_file_that_memd_wrote_is_replaced_without_a_backup(
    host, tmp_path, found, is_generated, notes
):
    path = tmp_path / "memd.service"
    if found is not None:
        path.write_text(found)
    change = service.write_signed(path, TEXT)
    assert change.is_needed
    assert change.is_generated is is_generated
    assert change.after == sign(TEXT).encode()
    planned = service._add_notes(host, InstallPlan((change,)), "systemd", "true")
    assert planned.notes == tuple(f"{path} {note}" for note in notes)


def test_a_file_with_the_same_text_need_not_change(tmp_path):
    path = tmp_path / "memd.service"
    path.write_text(sign(TEXT))
    assert not service.write_signed(path, TEXT).is_needed


def test_only_a_file_that_memd_wrote_is_removed(host, tmp_path):
    path = tmp_path / "memd.service"
    assert not service.remove_signed(path).is_needed
    path.write_text(TEXT)
    foreign = service.remove_signed(path)
    assert not foreign.is_needed
    planned = service._add_notes(host, InstallPlan((foreign,)), "systemd", "true")
    assert "left alone" in planned.notes[0]
    path.write_text(sign(TEXT))
    assert service.remove_signed(path) == FileChange(
        path, sign(TEXT).encode(), None, is_generated=True
    )
    path.write_bytes(sign(TEXT).encode() + b"\xff")
    assert service.remove_signed(path).after is None
    assert not service.remove_signed(path).is_generated


def test_commands_for_a_manager_that_does_not_answer_are_left_to_the_user(host):
    plan = InstallPlan(before=(("one", "a b"),), after=(("two",),), notes=("mind",))
    assert service._add_notes(host, plan, "systemd", "true") == plan
    quiet = service._add_notes(host, plan, "systemd", "false")
    assert quiet.is_empty
    assert quiet.notes[1:] == ("  one 'a b'", "  two", "mind")
    assert service._add_notes(host, InstallPlan(), "systemd", "false") == InstallPlan()


def test_a_query_succeeds_if_its_program_exits_0(host, tmp_path):
    assert service.query_succeeds(host, "true")
    assert not service.query_succeeds(host, "false")
    assert not service.query_succeeds(host, "no-such-program")
    broken = tmp_path / "broken"
    broken.write_text("no program")
    broken.chmod(0o755)
    nowhere = Host({"PATH": str(tmp_path)}, sys.executable, Path(), "linux")
    assert not service.query_succeeds(nowhere, "broken")


def test_variables_are_quoted_as_systemd_reads_them():
    unit = format_service_unit(
        DaemonUnit(environment={"MEMD_HOME": '/home/a b/100%/"$x"', "MEMD_VAULT": "w"})
    )
    assert '\nEnvironment="MEMD_HOME=/home/a b/100%%/\\"$x\\""\nEnvironment=MEMD_VAULT=w\n' in unit


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("/my apps/python", '"/my apps/python"'),
        ("50%", "50%%"),
        ("$HOME", '"$$HOME"'),
        ("a\\b\n", '"a\\\\b\\n"'),
        ("", '""'),
    ],
)
def test_words_of_a_command_are_quoted_as_systemd_reads_them(word, written):
    assert service._quote_word(word) == written


def test_the_units_of_another_vault_refer_to_each_other():
    unit = format_service_unit(DaemonUnit(name="memd-work"))
    for line in ("Requires=memd-work.socket", "After=memd-work.socket", "Also=memd-work.socket"):
        assert f"\n{line}\n" in unit


def test_the_agent_holds_the_settings_of_the_daemon():
    text = format_launchd_agent(
        "local.memd", ["/usr/bin/python", "<&>"], {"MEMD_VAULT": "w"}, "/logs/x.log"
    )
    assert plistlib.loads(sign(text).encode()) == {
        "Label": "local.memd",
        "ProgramArguments": ["/usr/bin/python", "<&>"],
        "EnvironmentVariables": {"MEMD_VAULT": "w"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardOutPath": "/logs/x.log",
        "StandardErrorPath": "/logs/x.log",
    }


@pytest.mark.parametrize(
    "text", [format_service_unit(DaemonUnit()), format_launchd_agent("local.memd", [], {}, "/x")]
)
def test_a_signature_tells_memds_file_from_an_edited_one(text):
    assert find_author(sign(text).encode()) == "memd"
    assert find_author(sign(text).replace("memd", "mine", 1).encode()) == "edited"
    assert find_author(f"{sign(text)}more\n".encode()) == "edited"
    assert find_author(text.encode()) == "other"
    assert find_author(None) == "other"


def test_daemon_and_installer_agree_on_the_launchd_label():
    assert service.LAUNCHD_LABEL == supervisor.LAUNCHD_LABEL
