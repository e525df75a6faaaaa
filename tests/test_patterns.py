"""Patterns that are compiled when first used."""

import gc
import importlib
import pkgutil
import re

import pytest

import memd
from memd.patterns import _LazyPattern, compile_lazily, compile_unicode_lazily


def test_a_lazy_pattern_finds_what_a_compiled_one_does():
    lazy = compile_lazily(r"(\w+) cat", re.IGNORECASE)
    assert lazy.search("a Black CAT")[1] == "Black"
    assert lazy.sub(r"\1 dog", "two cats") == "two dogs"
    assert [found[1] for found in lazy.finditer("one cat, two cats")] == ["one", "two"]
    assert lazy.flags & re.IGNORECASE
    assert lazy.pattern == r"(\w+) cat"


def test_a_lazy_unicode_pattern_knows_classes_of_letters():
    assert compile_unicode_lazily(r"\p{Han}+").findall("ab 東京 c") == ["東京"]


def test_a_pattern_is_compiled_at_its_first_use():
    broken = compile_lazily("(")
    with pytest.raises(re.error):
        broken.search("")


def test_every_pattern_of_memd_compiles():
    for module in pkgutil.walk_packages(memd.__path__, "memd."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.unfreeze()  # what a daemon in this process froze is not listed
    found = [one for one in gc.get_objects() if issubclass(type(one), _LazyPattern)]
    assert len(found) > 100
    for one in found:
        if one.pattern != "(":
            one._compile()
