import pytest

from memd.capture.claude_code import Ignored, Refused
from memd.capture.prepare import WRITERS_OWN, CaptureRequest, Preparer, is_small
from memd.capture.project import ProjectResolver
from memd.config import CaptureConfig
from memd.models import NewEvent
from tests.tables import every_row

PROMPT = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/nowhere"}


def preparer(clock, redact=None, **settings):
    return Preparer(CaptureConfig(**settings), clock, ProjectResolver(clock), redact)


def test_a_prompt_becomes_an_event_with_its_project(clock):
    (made,) = preparer(clock).prepare_all(
        [CaptureRequest("claude-code", {**PROMPT, "prompt": "hello"})]
    )
    assert isinstance(made.verdict, NewEvent)
    assert made.project.key == "/nowhere"
    assert made.source == "live"


@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        (CaptureRequest("nobody", [PROMPT]), Refused("the payload is not an object")),
        (CaptureRequest("claude-code", PROMPT, capture=False), Ignored("switched off by its sender")),
        (Refused("torn spool line"), Refused("torn spool line")),
    ],
)  # fmt: skip
def test_what_is_not_to_be_stored_says_why(clock, request_, verdict):
    (made,) = preparer(clock).prepare_all([request_])
    assert made.verdict == verdict


@pytest.mark.parametrize("source", ["live", "spool", "import"])
@pytest.mark.parametrize(
    ("directory", "cwd"),
    [
        (None, "/state/memd/writer/default"),
        ("/state/memd/writer/work", "/nowhere"),
        ("/home/dev/ledger", "/state/memd/writer/default/below"),
        ("/real/memd/writer/default", None),
    ],
)
def test_a_session_of_the_writer_is_not_stored(clock, source, directory, cwd):
    dirs = ("/state/memd/writer", "/real/memd/writer")
    ours = Preparer(CaptureConfig(), clock, ProjectResolver(clock), writer_dirs=dirs)
    payload = {**PROMPT, "prompt": "hello", "cwd": cwd}
    request = CaptureRequest("claude-code", payload, directory=directory, source=source)
    (made,) = ours.prepare_all([request])
    assert made.verdict == Ignored(WRITERS_OWN)


def test_a_project_with_the_name_of_the_writer_is_stored(clock):
    dirs = ("/state/memd/writer",)
    ours = Preparer(CaptureConfig(), clock, ProjectResolver(clock), writer_dirs=dirs)
    for place in ("/state/memd/writers", "/home/dev/memd/writer"):
        payload = {**PROMPT, "prompt": "hello", "cwd": place}
        (made,) = ours.prepare_all([CaptureRequest("claude-code", payload)])
        assert isinstance(made.verdict, NewEvent)


def test_only_a_line_of_the_spool_may_fail_without_a_word(clock):
    def fragile(_):
        raise LookupError

    ours = preparer(clock, fragile)
    (made,) = ours.prepare_all([CaptureRequest("claude-code", PROMPT, source="spool")])
    assert made.verdict == Refused("memd failed on it: LookupError")
    with pytest.raises(LookupError):
        ours.prepare_all([CaptureRequest("claude-code", PROMPT)])


@every_row(
    ("payload", "expected"),
    [
        ({"prompt": "short"}, True),
        ({"tool_response": {"stdout": "x" * 10_000}}, True),
        ({"tool_response": [{"text": "x" * 20_000}]}, False),
        ({"x" * 20_000: 1}, False),
        ([[]] * 5_000, False),
        (None, True),
    ],
)
def test_a_request_is_small_if_little_is_in_it(payload, expected):
    assert is_small([CaptureRequest("claude-code", payload)]) is expected
    assert not is_small([CaptureRequest("claude-code", payload)] * 2)


def test_a_prompt_that_is_given_now_has_the_branch_of_its_directory(clock, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/dev/cart\n")
    payload = {**PROMPT, "prompt": "hello", "cwd": str(tmp_path)}
    later = {**payload, "hook_event_name": "Stop"}
    found = preparer(clock).prepare_all([
        CaptureRequest("claude-code", payload), CaptureRequest("claude-code", payload, source="spool"),
        CaptureRequest("claude-code", {**payload, "git_branch": "of then"}, source="import"),
        CaptureRequest("claude-code", later),
    ])  # fmt: skip
    assert [one.verdict.payload.get("git_branch") for one in found] == [
        "dev/cart",
        None,
        "of then",
        None,
    ]
