"""A process that backs up or exports a vault until it is killed: `writer.py backup|export HOME EXPORTS`.

It prints + before and - after each.
"""

import contextlib
import io
import itertools
import os
import sys
import time
from pathlib import Path

from memd.cli import archive
from memd.daemon import backup
from memd.paths import Paths

_KEEP = 3


def main() -> None:
    """Back up, or export, until killed."""
    what, home, exports = sys.argv[1:4]
    paths = Paths({"MEMD_HOME": home, "HOME": home})
    for number in itertools.count():
        print("+", flush=True)
        if what == "backup":
            backup.create_backup(paths, None, _KEEP, time.time_ns() // 1_000_000, lambda *_: None)
        else:
            file = Path(exports, f"{os.getpid()}-{number % _KEEP}.jsonl")
            file.unlink(missing_ok=True)
            with contextlib.redirect_stdout(io.StringIO()):
                archive.run_export(str(file), None)
        print("-", flush=True)


if __name__ == "__main__":
    main()
