"""Regular expressions that are compiled when first used: memd has hundreds, and a start waits for none."""

import re
from typing import Any, cast


class _LazyPattern:
    """Stands for `re.compile(pattern, flags)`; its methods take the place of `__getattr__` one by one."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._given_flags), name)
        setattr(self, name, value)  # the next use finds it as fast as in a compiled pattern
        return value


def compile_lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` at the first use of a method. Not for `re.sub(compiled, …)` and the like."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
