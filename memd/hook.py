"""The file that agents' settings name as their hook; what it does is in hook_event.py.

    hook.py [EVENT | CLIENT:EVENT]

Python compiles the file that it is started with every time, and what that imports only once: so this one is short.
"""

import os
import sys

if not __package__:  # run as a file: `python -I -S …/memd/hook.py`
    # A client that exits terminates its hooks; this one still delivers its event. `signal` would import `enum`.
    import _signal  # type: ignore[import-not-found]  # not in the stubs

    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    _HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(_HERE), *(path for path in sys.path if path != _HERE)]

from memd.hook_event import main

if __name__ == "__main__":
    # Nothing is open or buffered: skip the interpreter's shutdown.
    os._exit(main(sys.argv[1:]))
