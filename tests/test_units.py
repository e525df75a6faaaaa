"""The systemd unit says nothing that systemd does not understand."""

import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parent.parent / "systemd" / "memd.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_the_unit_is_understood_to_the_last_key(tmp_path):
    """systemd only warns of a key that it does not know, so silence is what is asked for."""
    text = UNIT.read_text(encoding="utf-8").replace("%h/.local/bin/memd", "/bin/true")
    unit = tmp_path / "memd.service"
    unit.write_text(text, encoding="utf-8")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],  # noqa: S607  # wherever it is
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_it_is_given_longer_to_leave_than_it_needs():
    assert "TimeoutStopSec=10" in UNIT.read_text(encoding="utf-8")
