import sys
from pathlib import Path

import pytest

from memd.installers import service
from memd.installers.plan import FileChange, Place, Plan
from memd.installers.service import signed

TEXT = "[Unit]\nDescription=x\n"


@pytest.fixture
def place(tmp_path):
    return Place({"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, "/py", tmp_path, "linux")


def vault(place, name, **more):
    return Place({**place.environ, "MEMD_VAULT": name, **more}, "/py", place.package, "linux")


def test_another_vaults_daemon_has_a_name_and_is_stopped_by_it(place):
    assert service.named("memd", place, "-") == "memd"
    assert service.named("memd", vault(place, "work"), "-") == "memd-work"
    assert service.stopped(place) == ("/py", "-P", "-m", "memd", "stop")
    assert service.stopped(vault(place, "work"))[4:] == ("--vault", "work", "stop")


def test_a_daemon_is_told_only_what_its_manager_would_not_tell_it(place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    told = vault(place, "", XDG_RUNTIME_DIR="/run/user/7", MEMD_HOME="here")
    assert service.environment(told, "/run/user/7") == {"MEMD_HOME": str(tmp_path / "here")}
    assert service.environment(told, None)["XDG_RUNTIME_DIR"] == "/run/user/7"


@pytest.mark.parametrize(
    ("found", "is_memds", "caution"),
    [
        (None, False, ()),
        (signed("[Unit]\n"), True, ()),
        (signed("[Unit]\n") + "#\n", False, ("was edited; a copy is kept beside it",)),
        ("[Unit]\n", False, ("was not written by memd; a copy is kept beside it",)),
    ],
)
def test_only_what_memd_wrote_and_nobody_edited_is_replaced_without_a_copy(
    tmp_path, found, is_memds, caution
):
    path = tmp_path / "memd.service"
    if found is not None:
        path.write_text(found)
    change = service.written(path, TEXT)
    assert change.is_needed
    assert change.is_memds is is_memds
    assert change.after == signed(TEXT).encode()
    assert service.cautions([change]) == tuple(f"{path} {said}" for said in caution)


def test_a_file_that_stands_there_already_is_no_change(tmp_path):
    path = tmp_path / "memd.service"
    path.write_text(signed(TEXT))
    assert not service.written(path, TEXT).is_needed


def test_only_what_memd_wrote_is_removed(tmp_path):
    path = tmp_path / "memd.service"
    assert not service.removed(path).is_needed
    path.write_text(TEXT)
    foreign = service.removed(path)
    assert not foreign.is_needed
    assert "left alone" in service.cautions([foreign])[0]
    path.write_text(signed(TEXT))
    assert service.removed(path) == FileChange(path, signed(TEXT).encode(), None, is_memds=True)
    path.write_bytes(signed(TEXT).encode() + b"\xff")
    assert service.removed(path).after is None
    assert not service.removed(path).is_memds


def test_the_commands_of_a_manager_that_does_not_answer_are_told_to_the_user():
    plan = Plan(before=(("one", "a b"),), after=(("two",),), notes=("mind",))
    assert service.told(plan, "init", answers=True) == plan
    quiet = service.told(plan, "init", answers=False)
    assert quiet.is_empty
    assert quiet.notes[1:] == ("  one 'a b'", "  two", "mind")
    assert service.told(Plan(), "init", answers=False) == Plan()


def test_a_question_is_answered_by_the_program_itself(place, tmp_path):
    assert service.holds(place, "true")
    assert not service.holds(place, "false")
    assert not service.holds(place, "no-such-program")
    broken = tmp_path / "broken"
    broken.write_text("no program")
    broken.chmod(0o755)
    nowhere = Place({"PATH": str(tmp_path)}, sys.executable, Path(), "linux")
    assert not service.holds(nowhere, "broken")
