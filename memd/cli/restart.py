"""`memd restart`: stop, then start; for a new configuration or a new version."""

from memd.cli.start import check_settings, start
from memd.cli.stop import stop


def run() -> None:
    """Stop the daemon if it runs, and start it again."""
    check_settings()  # before the old daemon is gone
    print(stop())
    print(start())
