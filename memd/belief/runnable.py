"""Find what can be run, fetched or installed in a text: commands, addresses, packages, flags, scripts. Pure."""

import re
from collections.abc import Iterator

_ASSIGNMENT = re.compile(r"(?:export\s+)?[A-Za-z_]\w*=\S*\s+\S")
"""A variable that is set for what follows it."""
_CODE_SPAN = re.compile(r"`([^`\n]{1,300})`")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s`'\"<>)]+", re.IGNORECASE)
_HOST = re.compile(r"(?<![\w/@.-])(?:[a-z0-9-]{1,63}\.)+(?:com|org|net|io|dev|app|sh|ai|co|me|xyz|info|biz|ru|cn|de|fr|uk|eu|cloud|site|online|top|link|run|tech)(?::\d+)?(?![\w-])|\b\d{1,3}(?:\.\d{1,3}){3}\b", re.IGNORECASE)  # fmt: skip
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_SET_VARIABLE = re.compile(r"(?<![\w.])[A-Z][A-Z0-9_]{2,}=\S*")
_FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*(?:=\S+)?")
_RUN_PATH = re.compile(
    r"(?<![\w/.-])[\w@~./-]*[\w-]+\.(?:sh|bash|zsh|ps1|bat|cmd|exe)\b|\b(?:run|runs|execute|source|invoke|call)\s+`?((?:\.{1,2}/|~/|/)[\w.@/-]+)"
)
_PIPE = re.compile(r"\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python\d?|node|perl)\b|\$\(|\s>{1,2}\s+/")
_PACKAGE = re.compile(
    r"(?:\b(?:install|add|require|import|upgrade|npx|uvx|pipx|brew|pip|npm|pnpm|yarn|cargo|gem|apt|go get)\s+(?:-\S+\s+)*|"
    r"\b(?:package|library|module|dependency|crate|gem|plugin|image)\s+)(@?[a-z0-9](?:[\w.@/-]*[-/@.](?=\w)|[\w.@/-]*\d)[\w.@/-]*)",
    re.IGNORECASE,
)
_SHELL_HEADS = frozenset(
    """npm npx pnpm yarn bun bunx deno node git gh glab curl wget bash sh zsh sudo rm mv cp chmod chown kill docker podman kubectl helm terraform
    ansible make cmake cargo rustup go pip pip3 pipx uv uvx poetry pytest tox ruff python python3 ruby gem bundle rake mvn gradle java php composer
    ssh scp rsync psql mysql redis-cli sqlite3 brew apt apt-get dnf yum pacman systemctl service crontab eval exec source export openssl nc
    powershell pwsh aws gcloud az flyctl vercel netlify heroku wrangler firebase supabase memd claude codex""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Programs whose name begins a command: what has to be in the user's words to be in a note of them."""
_RUNS = frozenset(
    ["", "run", "runs", "running", "use", "uses", "using", "execute", "call", "invoke", "with", "via", "by", "do", "and", "then", "always", "must", "to"]
)  # fmt: skip
"""Words before a program's name that make it a command, not a noun; the empty one is a sentence's beginning."""
_VERB_LETTERS = 4
_PLURAL_COMMANDS = frozenset(
    {"status", "logs", "images", "secrets", "tests", "scripts", "contexts"}
)
_NO_ARGUMENT = frozenset(
    "is are was were has have had to and or in on for with the a an of as by from not can will should must that this it its when if so but only never always no any".split()  # noqa: SIM905  # as above
)


def find_runnable(text: str) -> Iterator[str]:
    """Yield every command, URL, host, package, flag and path to run in a text."""
    for pattern in (_URL, _HOST, _ADDRESS, _SET_VARIABLE, _FLAG, _RUN_PATH, _PIPE):
        yield from (
            (match[match.lastindex or 0]).rstrip(".,;:") for match in pattern.finditer(text)
        )
    yield from (match[1].rstrip(".,;:") for match in _PACKAGE.finditer(text))
    for span in _CODE_SPAN.findall(text):
        if span.split()[:1] and (
            span.split()[0] in _SHELL_HEADS
            or re.search(r"\s-|[|;&$]", span)
            or _ASSIGNMENT.match(span)
        ):
            yield span
    for sentence in re.split(r"[.,;:()\n]\s|\n", text):
        tokens = re.findall(r"[^\s,;:()`\"'“”]+", sentence)
        for before, head, following in zip(["", *tokens], tokens, tokens[1:], strict=False):
            is_command = head in _SHELL_HEADS and before.lower() in _RUNS
            # “npm breaks the lockfile” says what npm does.
            is_verb = not before and len(following) > _VERB_LETTERS and following[-1:] == "s"
            is_verb = is_verb and following not in _PLURAL_COMMANDS
            if is_command and following.islower() and not is_verb and following not in _NO_ARGUMENT:
                yield f"{head} {following}"
