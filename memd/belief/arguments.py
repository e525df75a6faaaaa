"""Find the exact arguments of a sentence: the commands, flags, paths and pieces of code that it names. Pure.

What stands in backticks is meant as it stands. Without them only what can hardly be anything else counts: a
known program with its subcommand or flags, a long flag, a path that ends with `/` or has a file's ending.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memd.patterns import compile_lazily

_QUOTED = compile_lazily(r"`+([^`\n]{1,200})`+|[\"“„«「]([^\"“”„«»「」\n]{2,200})[\"”“»」]")
_BARE = compile_lazily(
    r"[^\s`\"“”„«»「」,;:!?()、。，；：！？\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7ff]+(?<![.…])"
)
_FLAG = compile_lazily(r"--?[A-Za-z][\w-]*(?:=\S*)?\Z")
_LONG_FLAG = compile_lazily(r"--[a-z][\w-]{2,}(?:=\S+)?\Z")
_WORD = compile_lazily(r"[\w@./:+-]+\Z")
_NAME = compile_lazily(r"[a-z][a-z0-9_.-]*\Z")
_PATH = compile_lazily(r"~?\.{0,2}/?[\w.@*?+-]+(?:/[\w.@*?+-]+)*/?(?:\*\*)?\Z")
_ENDING = compile_lazily(
    r"(?:.*\.(?:lock|md|mdx|rst|txt|json|jsonc|ya?ml|toml|ini|cfg|conf|env|xml|html?|css|scss|less|svg|png|csv|sql|db|py|pyi"
    r"|js|jsx|mjs|cjs|ts|tsx|vue|svelte|go|mod|sum|rs|rb|java|kts?|c|cc|cpp|h|hpp|cs|swift|php|sh|bash|zsh|tf|proto|graphql"
    r"|gradle|ipynb|snap|patch|pem|key)|Dockerfile|Makefile|\.[a-z][\w-]*(?:\.[a-z]+)?)\Z"
)
_SCRIPT = compile_lazily(r"\.{0,2}/?[\w.@+-]+(?:/[\w@+-]+)*/[\w@+-]+(?:\.(?:sh|bash))?\Z")
"""A path that can be run: its name has no ending, or a shell's."""
_CODE = compile_lazily(r".*(?:\w\.\w|\w\(|::|->|@\w|!\w|#\s?\w|_\w|[a-z][A-Z]|[<>{}\[\]$=]).*\Z")
_PLACEHOLDER = compile_lazily(r"<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\.{3}|…|\*")

_SUBCOMMANDS = {
    "git": "push commit add rebase merge reset stash clean checkout switch restore pull cherry-pick revert tag fetch branch rm filter-branch",
    "npm": "install i ci test publish add update audit start build link run exec uninstall",
    "pnpm": "install i test publish add update audit start build link run exec dlx remove",
    "yarn": "install test publish add upgrade audit start build link run dlx remove",
    "bun": "install test add update build run remove x",
    "cargo": "test build update publish fmt clippy run bench check add install fix nextest",
    "docker": "build push run compose system volume exec rm rmi",
    "podman": "build push run compose exec rm",
    "kubectl": "apply delete exec scale edit create",
    "helm": "install upgrade uninstall rollback",
    "terraform": "apply destroy plan init import",
    "tofu": "apply destroy plan init import",
    "pip": "install uninstall", "pip3": "install uninstall",
    "uv": "run sync add pip lock remove", "poetry": "add install update run lock", "conda": "install env",
    "go": "test vet build mod fmt generate install", "make": "test check lint format install deploy",
    "gh": "pr release repo issue", "glab": "mr release", "just": "test check lint fmt",
    "apt": "install remove", "apt-get": "install remove", "brew": "install upgrade",
    "rails": "", "alembic": "upgrade downgrade revision", "systemctl": "restart stop start",
    "npx": "", "bunx": "", "sudo": "", "rm": "", "curl": "", "wget": "", "pytest": "", "tox": "", "nox": "", "mypy": "", "ruff": "check format",
    "eslint": "", "prettier": "", "tsc": "", "jest": "", "vitest": "", "gradle": "", "mvn": "", "psql": "", "mysql": "", "chmod": "", "chown": "",
    "rsync": "", "scp": "", "ssh": "", "pipenv": "install run", "virtualenv": "", "deno": "test run fmt lint", "biome": "check format",
    "golangci-lint": "run", "ansible-playbook": "", "sed": "", "black": "", "flake8": "", "pylint": "", "gofmt": "", "rustup": "",
    "pre-commit": "run", "shellcheck": "", "hadolint": "", "bazel": "test build run", "dotnet": "test build run publish", "composer": "install update",
    "bundle": "install exec update", "rake": "", "mix": "test format", "node": "", "python": "", "python3": "", "bash": "", "sh": "",
}  # fmt: skip
_MORE = """rg grep egrep find fd cat ls awk jq yq tar cp mv vim nano perl ruby java javac gcc clang cmake ninja meson redis-cli sqlite3 mongosh aws gcloud az
 heroku vercel netlify wrangler flyctl supabase prisma drizzle-kit turbo nx lerna rush tsx ts-node nodemon pm2 webpack vite rollup esbuild parcel flutter dart
 xcodebuild swift pod fastlane gem rbenv pyenv asdf mise nix dnf yum pacman apk snap sbt lein stack cabal zig php artisan phpunit phpstan rubocop rspec hugo
 mkdocs hatch pdm rye pipx uvx pyright basedpyright ty isort yapf bandit trivy gitleaks shfmt yamllint markdownlint stylelint oxlint kill pkill killall dd
 truncate tee touch xargs crontab journalctl service reboot shutdown mkfs openssl gpg ffmpeg playwright cypress mocha ava storybook tofu pulumi packer vagrant"""
_PROGRAMS = frozenset([*_SUBCOMMANDS, *_MORE.split()])
"""What is a command in backticks; without them, only those above with their subcommands."""
_ENGLISH = frozenset(
    [
        "go",
        "make",
        "just",
        "black",
        "node",
        "sed",
        "rake",
        "mix",
        "bash",
        "sh",
        "python",
        "ruff",
        "brew",
        "rails",
        "bundle",
        "deno",
        "helm",
        "git",
    ]
)
"""Programs whose name alone may be a word, or is no act."""
_RUNS_NAME = frozenset({("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("uv", "run"), ("poetry", "run"),
                        ("npm", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"), ("docker", "compose"), ("gh", "pr"),
                        ("gh", "release"), ("glab", "mr"), ("uv", "pip"), ("conda", "env"), ("go", "mod")})  # fmt: skip
_WORDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Argument:
    """An exact argument; the sentence decides what it is where its form does not."""

    text: str
    start: int
    end: int
    is_command: bool = False
    is_flag: bool = False
    is_path: bool = False
    is_code: bool = False
    is_name: bool = False
    """Whether it begins with a word that no known program has: a command only if the sentence says that it is run."""


def find_arguments(text: str) -> Iterator[Argument]:
    """Yield the arguments of a text in their order."""
    at = 0
    for quoted in _QUOTED.finditer(text):
        yield from _find_bare(text, at, quoted.start())
        at = quoted.end()
        content = next(group for group in quoted.groups() if group is not None).strip()
        found = _classify(content, quoted.start(), quoted.end())
        if quoted.group(1) is None:
            # Quotation marks are around words as well: they must be a command, flag or path by themselves.
            found = _classify_bare(content, quoted.start(), quoted.end()) if found else None
        if found is not None:
            yield found
    yield from _find_bare(text, at, len(text))


def _classify(content: str, start: int, end: int) -> Argument | None:
    """Classify the text of a code span."""
    bare = " ".join(_PLACEHOLDER.sub(" ", content).split()) if " " in content else content
    tokens = bare.split()
    if not tokens or len(tokens) > _WORDS_MAX:
        return None
    first = tokens[0]
    is_script = bool(_SCRIPT.match(first))
    is_name, is_code = bool(_NAME.match(bare)), bool(_CODE.match(bare))
    if _FLAG.match(first) and _are_shell_words(tokens[1:]):
        found = Argument(bare, start, end, is_flag=True)
    elif len(tokens) > 1:
        is_plain = bool(_NAME.match(first)) and _are_shell_words(tokens[1:])
        has_flag = any(token.startswith("-") for token in tokens[1:])
        is_shell = first in _PROGRAMS or is_script or (is_plain and has_flag)
        found = Argument(
            bare, start, end, is_command=is_shell, is_code=not is_shell, is_name=is_plain
        )
    elif first in _PROGRAMS:
        found = Argument(bare, start, end, is_command=True)
    elif _PATH.match(bare) and ("/" in bare or _ENDING.match(bare)):
        # `process.env` looks like a file, too.
        is_code = "/" not in bare and bool(re.match(r"[A-Za-z]\w*\.\w+\Z", bare))
        found = Argument(bare, start, end, is_path=True, is_command=is_script, is_code=is_code)
    else:
        found = Argument(bare, start, end, is_code=is_code, is_name=is_name)
    is_any = found.is_flag or found.is_command or found.is_path or found.is_code or found.is_name
    return found if is_any else None


def _are_shell_words(tokens: list[str]) -> bool:
    return all(_WORD.match(token) or _FLAG.match(token) for token in tokens)


def _find_bare(text: str, start: int, end: int) -> Iterator[Argument]:
    """Yield what is plainly a command, a flag or a path without any marks."""
    tokens = list(_BARE.finditer(text, start, end))
    number = 0
    while number < len(tokens):
        count = _measure_command(text, tokens[number:])
        token = tokens[number]
        if count:
            last = tokens[number + count - 1]
            content = " ".join(one.group() for one in tokens[number : number + count])
            yield Argument(content, token.start(), last.end(), is_command=True)
        else:
            found = _classify_bare(token.group(), token.start(), token.end())
            if found is not None:
                yield found
        number += count or 1


def _classify_bare(content: str, start: int, end: int) -> Argument | None:
    tokens = list(_BARE.finditer(content))
    if _measure_command(content, tokens) == len(tokens) > 0:
        return Argument(content, start, end, is_command=True)
    if _LONG_FLAG.match(content):
        return Argument(content, start, end, is_flag=True)
    is_directory = content.endswith("/") and len(content) > 2  # noqa: PLR2004  # `a/` may be a half of a word
    is_file = "/" in content or content.startswith(".") or content.count(".") == 1
    if "://" in content or not _PATH.match(content):
        return None
    if is_directory or (is_file and _ENDING.match(content)):
        return Argument(content, start, end, is_path=True)
    return None


def _measure_command(text: str, tokens: list[re.Match[str]]) -> int:
    """Count the leading words that are one command; 0 if they begin none."""
    if not tokens or (program := tokens[0].group()) not in _SUBCOMMANDS:
        return 0
    known = _SUBCOMMANDS[program].split()
    words = [program]
    for before, token in itertools.pairwise(tokens):
        word = token.group()
        if text[before.end() : token.start()].strip(" ") or len(words) == _WORDS_MAX:
            break
        is_sub = len(words) == 1 and word in known
        is_name = tuple(words) in _RUNS_NAME and _NAME.match(word)
        is_option = word.startswith("-") and _FLAG.match(word)
        is_operand = (
            words[0] in {"rm", "chmod"} and len(words) > 1 and _PATH.match(word) and "/" in word
        )
        if not (is_sub or is_name or is_option or is_operand):
            break
        words.append(word)
    return 0 if len(words) == 1 and program in _ENGLISH else len(words)
