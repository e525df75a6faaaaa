"""Runs a command on a terminal of a given size, and returns what it printed there."""

import fcntl
import os
import pty
import struct
import subprocess
import termios


def run_on_terminal(command, environ, *, columns, lines=1_000, cwd=None, keys=b""):
    """The output, with its colours; line ends as `\\n`."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environ, cwd=cwd, close_fds=True
    )  # fmt: skip
    os.close(terminal)
    os.write(control, keys)
    output = b""
    try:
        while piece := os.read(control, 65_536):
            output += piece
    except OSError:  # Linux reports EIO when the last program has closed the terminal
        pass
    finally:
        os.close(control)
        process.wait(timeout=60)
    return output.decode().replace("\r\n", "\n")
