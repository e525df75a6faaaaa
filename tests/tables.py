"""Tables of cases: long ones are data, and one test goes through those that are too quick to be tests of their own."""

import functools
import inspect
import tomllib
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

_FOLDER = Path(__file__).parent / "data" / "tables"


def read_tables(module):
    """Read the tables of a test module, by the name of the test or of the constant that they belong to."""
    return tomllib.loads((_FOLDER / f"{module}.toml").read_text(encoding="utf-8"))


def every_row(names, rows, *, ids=None):
    """Run a test for all rows, as `pytest.mark.parametrize` would; a failure tells each row that fails.

    Collecting and reporting a test takes longer than most tables take for a row. A row gets no fixtures of
    its own: a test that writes to one belongs under `parametrize`.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_read_row(names, row) for row in rows]
    if ids is not None and not callable(ids):
        cases = [(label, values) for label, (_, values) in zip(ids, cases, strict=True)]

    def decorate(test):
        @functools.wraps(test)
        def run(**given):
            failed = []
            for label, values in cases:
                try:
                    test(**values, **given)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # told at the end
                    error.add_note(f"in the row {label!r}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} rows fail", failed)

        signature = inspect.signature(test)
        left = [one for one in signature.parameters.values() if one.name not in names]
        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate


def _read_row(names, row):
    """What names a row, and its values by their names."""
    label = row
    if isinstance(row, ParameterSet):
        assert not row.marks, "a row with a mark is a test of its own"
        label, row = row.id or row.values, row.values
    elif len(names) == 1:
        row = (row,)
    return label, dict(zip(names, row, strict=True))
