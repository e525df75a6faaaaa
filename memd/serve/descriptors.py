"""Descriptors enough for every connection that may come, or fewer connections.

A process may often have 1,024 open unless it asks for more. When they run out, not only the door is
shut: no file can be opened either, so some are kept for the house.
"""

import contextlib
import resource

RESERVE = 128
"""For the vault, the log, the spool, the model's server, and whatever is opened for a moment."""


def provide(connections: int) -> int:
    """How many of these connections may be open at once, once the system's limit is as high as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # Some systems have a limit below the one that they tell.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(1, min(connections, soft - RESERVE))
