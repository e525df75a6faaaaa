"""Check, for `memd doctor`, what memories are shared over: the place of `[sync]` and the server of `[team]`.

Nothing is written there; each check has a deadline of seconds.
"""

from collections.abc import Iterator

from memd.config import Config
from memd.errors import BadRequest, ConfigError
from memd.models import Finding
from memd.paths import Paths
from memd.sharing import places, team_server
from memd.sharing.encryption import read_sealing
from memd.sharing.records import PlaceUnreachable
from memd.sharing.team_server import ServerRefused, ServerUnreachable, describe_url


def examine_sharing(config: Config, paths: Paths) -> list[Finding]:
    """Check what the settings name; nothing if they name nothing."""
    return [*_check_place(config, paths), *_check_encryption(config, paths), *_check_team(config)]


def _check_place(config: Config, paths: Paths) -> Iterator[Finding]:
    if not config.sync.place:
        return
    try:
        place = places.parse_target(config.sync.place, paths.mirrors_dir, asks=False)
        words = place.probe()
    except PlaceUnreachable as error:
        remedy = "what is to be sent waits; `memd sync` in a shell may ask for a password"
        yield Finding("place", "warning", error.message, remedy)
    except (BadRequest, OSError) as error:
        yield Finding("place", "problem", str(error), "correct [sync] in config.toml")
    else:
        yield Finding("place", "ok", f"{place.name}: {words}")


def _check_encryption(config: Config, paths: Paths) -> Iterator[Finding]:
    if not config.sync.recipients:
        return
    try:
        read_sealing(config.sync, paths.age_key)
    except ConfigError as error:
        remedy = "nothing is synced until then"
        yield Finding("encryption", "problem", error.message, remedy)
    else:
        count = len(config.sync.recipients)
        yield Finding("encryption", "ok", f"keys: {count}, this machine's among them")


def _check_team(config: Config) -> Iterator[Finding]:
    url = config.team.url
    if not url:
        return
    try:
        found = team_server.examine(url)
    except ServerUnreachable as error:
        yield Finding(
            "team", "warning", error.message, "what is to be shared waits; answers do not"
        )
        return
    except (ServerRefused, BadRequest) as error:
        yield Finding("team", "problem", error.message)
        return
    place = describe_url(url)
    if found.unguarded:
        names = ", ".join(found.unguarded)
        yield Finding(
            "team", "problem", f"{place}: row-level security is off for {names}",
            "until its owner enables it (`ALTER TABLE … ENABLE ROW LEVEL SECURITY`), all who connect see all",
        )  # fmt: skip
    elif found.is_above:
        yield Finding(
            "team", "warning", f"{place}: {found.user} stands above row-level security",
            "share as a user of your own who is neither the owner nor a superuser",
        )  # fmt: skip
    elif not found.roles:
        yield Finding(
            "team", "warning", f"{place}: {found.user} has no role in any project",
            f"ask a maintainer: `memd team grant {found.user} writer PROJECT`",
        )  # fmt: skip
    else:
        roles = ", ".join(f"{role} of {name}" for name, role in sorted(found.roles.items()))
        words = f"PostgreSQL {found.version}, schema {found.schema}, row-level security on"
        yield Finding("team", "ok", f"{place}: {found.user} is {roles}; {words}")
