import socket
import stat

import pytest

from memd.serve.address import Address


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "memd.sock"


def test_what_is_taken_is_ours_until_it_is_given_back(path):
    address = Address(str(path))
    assert not address.is_ours()
    with address.take():
        assert address.is_ours()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        address.give_back()
    assert not path.exists()
    assert not address.is_ours()


def test_a_socket_that_took_its_place_is_not_ours_and_stays(path):
    address = Address(str(path))
    with address.take(), socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        other.bind(str(path))
        assert not address.is_ours()
        address.give_back()
        assert path.is_socket()


def test_it_can_be_taken_again_after_somebody_removed_it_with_its_directory(path):
    address = Address(str(path))
    with address.take():
        path.unlink()
        path.parent.rmdir()
        assert not address.is_ours()
        with address.take():
            assert address.is_ours()
