import plistlib

import pytest

from memd.daemon import systemd
from memd.installers.service import (
    LAUNCHD_LABEL,
    Job,
    agent,
    author,
    quoted,
    service_unit,
    signed,
)


def test_the_environment_is_quoted_in_the_language_of_units():
    unit = service_unit(
        Job(environment={"MEMD_HOME": '/home/a b/100%/"$x"', "MEMD_VAULT": "w"})
    )
    assert (
        '\nEnvironment="MEMD_HOME=/home/a b/100%%/\\"$x\\""\nEnvironment=MEMD_VAULT=w\n' in unit
    )


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
def test_a_word_of_a_command_is_taken_as_it_is(word, written):
    assert quoted([word]) == written


def test_another_vaults_units_name_each_other():
    unit = service_unit(Job(name="memd-work"))
    for line in (
        "Requires=memd-work.socket",
        "After=memd-work.socket",
        "Also=memd-work.socket",
    ):
        assert f"\n{line}\n" in unit


def test_the_agent_says_what_launchd_reads():
    text = agent("local.memd", ["/usr/bin/python", "<&>"], {"MEMD_VAULT": "w"}, "/logs/x.log")
    assert plistlib.loads(signed(text).encode()) == {
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


@pytest.mark.parametrize("text", [service_unit(Job()), agent("local.memd", [], {}, "/x")])
def test_memd_knows_its_own_work_from_what_somebody_has_edited(text):
    assert author(signed(text)) == "memd"
    assert author(signed(text).replace("memd", "mine", 1)) == "edited"
    assert author(signed(text) + "more\n") == "edited"
    assert author(text) == "somebody"
    assert author("") == "somebody"


def test_the_daemon_recognises_the_label_of_its_agent():
    assert LAUNCHD_LABEL == systemd.LAUNCHD_LABEL
