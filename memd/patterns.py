"""Regular expressions that are compiled when first used: memd has hundreds, and a start waits for none."""

import re
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import regex


class _LazyPattern:
    """Stands for `re.compile(pattern, flags)`; its methods take the place of `__getattr__` one by one."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compile(), name)
        setattr(self, name, value)  # the next use finds it as fast as in a compiled pattern
        return value

    def _compile(self) -> Any:
        return re.compile(self.pattern, self._given_flags)


class _LazyUnicodePattern(_LazyPattern):
    """The same for `regex.compile(pattern)`."""

    def _compile(self) -> Any:
        import regex  # noqa: PLC0415  # two megabytes, for what most daemons are never asked

        return regex.compile(self.pattern, self._given_flags)


def compile_lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` at the first use of a method. Not for `re.sub(compiled, …)` and the like."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def compile_unicode_lazily(pattern: str) -> "regex.Pattern[str]":
    r"""`regex.compile` at the first use of a method, which also imports `regex`: it knows `\p{…}`."""
    return cast("regex.Pattern[str]", _LazyUnicodePattern(pattern, 0))
