"""Paths of other systems are read by their text, and never joined to a directory of this machine."""

from memd.directories import is_below, is_directory_path, is_windows_path, normalize_windows_path
from tests.tables import every_row


@every_row(
    ("path", "usual"),
    [
        ("D:\\shop", "D:\\shop"), ("d:/shop/", "D:\\shop"), ("D:\\shop\\.\\src\\..", "D:\\shop"), ("c:\\", "C:\\"),
        ("\\\\?\\C:\\shop", "C:\\shop"), ("\\\\host\\share\\shop\\", "\\\\host\\share\\shop"),
        ("\\\\?\\UNC\\host\\share\\shop", "\\\\host\\share\\shop"),
    ],
)  # fmt: skip
def test_an_absolute_path_of_windows_has_one_usual_form(path, usual):
    assert is_windows_path(path)
    assert is_directory_path(path)
    assert normalize_windows_path(path) == normalize_windows_path(usual) == usual


@every_row(
    "path", ["", ".", "shop", "~/shop", "C:shop", "1:\\shop", "é:/shop", "/a\0b", "/" + "a" * 5_000]
)
def test_what_is_no_absolute_path_is_no_directory(path):
    assert not is_directory_path(path)


def test_a_directory_is_below_another_by_whole_names():
    assert is_below("D:\\shop\\src", "d:/shop")
    assert is_below("D:\\shop", "D:\\")
    assert is_below("/home/dev/shop", "/home/dev/")
    assert is_below("/home", "/")
    assert not is_below("D:\\shopping", "D:\\shop")
    assert not is_below("/home/dev/shopping", "/home/dev/shop")
    assert not is_below("/D:/shop", "D:\\shop")
