"""Whether a text of four times the length takes about four times the work: what is quadratic takes sixteen times."""

import time

_TRIES = 4


def grows_in_line(work, piece, characters=3_000):
    """Whether it does, in one of a few tries; only this thread's own time on the processor counts."""
    work(piece)  # what is made once
    return any(
        _spend(work, piece, 4 * size) < 8 * _spend(work, piece, size)
        for size in range(characters, characters + 50 * _TRIES, 50)
    )


def _spend(work, piece, characters):
    text = piece * (characters // len(piece))
    began = time.thread_time_ns()
    work(text)
    return time.thread_time_ns() - began
