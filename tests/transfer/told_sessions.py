"""One session as each client keeps it: the field names are those of files that the client wrote, or its own code declares.

Seen in files that the client itself wrote while a scripted model answered it: Codex CLI 0.169.0, Copilot CLI 1.0.102, Gemini CLI
0.61.0, OpenCode 1.18.33, Pi 1.5.2. Cursor: samples in public readers of its transcripts. Aider: `aider/io.py`.
"""

import json
from datetime import UTC, datetime

DIRECTORY = "/home/dev/shop"
START = 1_790_000_000_000
ASKED = (
    "check.py fails: find out why and fix it."
    " From now on always use ruff for linting, never flake8."
)
FIRST = "I'll run the test first."
COMMAND = "pytest tests/test_retry.py"
FAILED = "FAILED tests/test_retry.py::test_once - AssertionError: assert 0 == 1\n1 failed in 0.12s"
CAUSE = "The root cause is that `attempts` in src/retry.py stops before `count`."
FILE = f"{DIRECTORY}/src/retry.py"
OLD, NEW = "    return list(range(1, count))", "    return list(range(1, count + 1))"
PASSED = "1 passed in 0.08s"
ANSWER = "Fixed `attempts` in src/retry.py: the range stopped one short, so the last attempt was never made."
CHOICE = "Let's keep JSON lines for the audit log, not CSV."
AGREED = "Understood: the audit log stays in JSON lines."
PATCH = f"*** Begin Patch\n*** Update File: src/retry.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch\n"


def at(step):
    """When a step of the session happened, UTC milliseconds."""
    return START + step * 10_000


def iso(step):
    """The same as clients write it."""
    moment = datetime.fromtimestamp(at(step) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text):
    """The UTC milliseconds of such a text."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def join(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def claude_code(session="c-1"):
    base = {"sessionId": session, "cwd": DIRECTORY}

    def line(step, kind, turn, **message):
        return base | {"type": kind, "uuid": f"u{step}", "timestamp": iso(step), "message": message} | (
            {"promptId": turn} if kind == "user" else {}
        )  # fmt: skip

    def says(step, text, reason):
        return line(step, "assistant", "", id=f"m{step}", content=[{"type": "text", "text": text}], stop_reason=reason)  # fmt: skip

    def calls(step, name, given):
        use = {"type": "tool_use", "id": f"t{step}", "name": name, "input": given}
        return line(step, "assistant", "", id=f"m{step}", content=[use], stop_reason="tool_use")

    def results(step, turn, text, *, is_error=False):
        block = {"type": "tool_result", "tool_use_id": f"t{step - 1}", "content": text}
        return line(step, "user", turn, content=[block | ({"is_error": True} if is_error else {})])

    edit = {"file_path": FILE, "old_string": OLD, "new_string": NEW}
    yield "session.jsonl", join([
        line(0, "user", "p1", content=ASKED),
        says(1, FIRST, "tool_use"), calls(2, "Bash", {"command": COMMAND}),
        results(3, "p1", f"Exit code 1\n{FAILED}", is_error=True),
        says(4, CAUSE, "tool_use"), calls(5, "Edit", edit), results(6, "p1", "updated"),
        calls(7, "Bash", {"command": COMMAND}), results(8, "p1", PASSED), says(9, ANSWER, "end_turn"),
        line(10, "user", "p2", content=CHOICE), says(11, AGREED, "end_turn"),
    ])  # fmt: skip


def codex(session="0199e0a1-0000-7000-8000-000000000001"):
    def line(step, kind, **payload):
        return {"timestamp": iso(step), "ordinal": step, "type": kind, "payload": payload}

    def item(step, turn, kind, *, kinds=None, **fields):
        marks = {"turn_id": turn} | ({"content_item_kinds": kinds} if kinds else {})
        return line(step, "response_item", type=kind, **fields, internal_chat_message_metadata_passthrough=marks)  # fmt: skip

    def message(step, turn, role, *parts, kinds=None):
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text} for text in parts]
        return item(step, turn, "message", kinds=kinds, id=f"msg_{step}", role=role, content=content)  # fmt: skip

    def command(step, turn, output, code):
        call = f"call_{step}"
        done = {
            "type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", COMMAND], "cwd": f"file://{DIRECTORY}",
            "status": "failed" if code else "completed", "aggregated_output": output, "exit_code": code,
        }  # fmt: skip
        told = f"Chunk ID: 0b0349\nWall time: 0.8281 seconds\nProcess exited with code {code}\nOriginal token count: 60\nOutput:\n{output}"
        given = json.dumps({"cmd": COMMAND})
        return [
            item(step, turn, "function_call", name="exec_command", arguments=given, call_id=call),
            line(step + 1, "event_msg", type="item_completed", turn_id=turn, item=done),
            item(step + 1, turn, "function_call_output", call_id=call, output=told),
        ]

    def started(step, turn):
        return line(step, "event_msg", type="task_started", turn_id=turn)

    def ended(step, turn, text):
        return line(step, "event_msg", type="task_complete", turn_id=turn, last_agent_message=text)

    def typed(step, turn, text):
        said = {"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": text}]}
        return [
            message(step, turn, "user", text, kinds=["user.text"]),
            line(step, "event_msg", type="item_completed", turn_id=turn, item=said),
        ]

    one, two = "0199e0a1-1111-7000-8000-000000000001", "0199e0a1-2222-7000-8000-000000000002"
    rules = f"# AGENTS.md instructions for {DIRECTORY}\n\n<INSTRUCTIONS>\nAlways run check.py.\n</INSTRUCTIONS>"
    place = f"<environment_context>\n  <cwd>{DIRECTORY}</cwd>\n</environment_context>"
    changed = {"type": "update", "unified_diff": f"@@ -1,2 +1,2 @@\n def attempts(count):\n-{OLD}\n+{NEW}\n", "move_path": None}  # fmt: skip
    change = {"type": "FileChange", "id": "call_5", "changes": {FILE: changed}, "status": "completed", "stdout": "Success.", "stderr": ""}  # fmt: skip
    name = f"rollout-2026-09-21T13-33-20-{session}.jsonl"
    yield name, join([
        line(0, "session_meta", id=session, session_id=session, cwd=DIRECTORY, cli_version="0.169.0", source="exec"),
        started(0, one), message(0, one, "developer", "You are Codex."),
        message(0, one, "user", rules, place, kinds=["agents_md.instructions", "environments.environment_context"]),
        line(0, "turn_context", turn_id=one, cwd=DIRECTORY), *typed(0, one, ASKED),
        message(1, one, "assistant", FIRST), *command(2, one, FAILED, 1), message(4, one, "assistant", CAUSE),
        item(5, one, "custom_tool_call", call_id="call_5", name="apply_patch", input=PATCH),
        line(6, "event_msg", type="item_completed", turn_id=one, item=change),
        item(6, one, "custom_tool_call_output", call_id="call_5", output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),
        *command(7, one, PASSED, 0), message(9, one, "assistant", ANSWER), ended(9, one, ANSWER),
        started(10, two), *typed(10, two, CHOICE), message(11, two, "assistant", AGREED), ended(11, two, AGREED),
    ])  # fmt: skip


def copilot(session="458a4d2f-4b07-42d5-9f93-afd4f86bb3e5"):
    def line(step, kind, **data):
        return {
            "type": kind,
            "data": data,
            "id": f"e{step}",
            "timestamp": iso(step),
            "parentId": None,
        }

    def typed(step, text):
        sent = f"<current_datetime>{iso(step)}</current_datetime>\n\n{text}"
        return line(step, "user.message", content=text, transformedContent=sent, messageId=f"u{step}", interactionId="i", turnId="0")  # fmt: skip

    def says(step, text):
        return line(
            step,
            "assistant.message",
            messageId=f"m{step}",
            content=text,
            toolRequests=[],
            turnId="0",
        )

    def tool(step, name, given, content, code=None):
        call = f"call_{step}"
        told = (
            content if code is None else f"{content}\n<shellId: 0 completed with exit code {code}>"
        )
        return [
            line(step, "tool.execution_start", toolCallId=call, toolName=name, arguments=given, turnId="0"),
            line(step + 1, "tool.execution_complete", toolCallId=call, success=True, result={"content": told}),
        ]  # fmt: skip

    bash = {"command": COMMAND}
    edit = {"path": FILE, "old_str": OLD, "new_str": NEW}
    yield f"{session}/events.jsonl", join([
        line(0, "session.start", sessionId=session, copilotVersion="1.0.102", context={"cwd": DIRECTORY, "branch": "main"}),
        typed(0, ASKED), line(0, "system.message", role="system", content="You are the GitHub Copilot CLI."),
        says(1, FIRST), *tool(2, "bash", bash, FAILED, 1), says(4, CAUSE), *tool(5, "edit", edit, "updated"),
        *tool(7, "bash", bash, PASSED, 0), says(9, ANSWER), line(9, "assistant.turn_end", turnId="3"),
        line(10, "user.message", content="Keep going.", isAutopilotContinuation=True),
        typed(10, CHOICE), says(11, AGREED), line(12, "session.shutdown", shutdownType="routine"),
    ])  # fmt: skip


def gemini_cli(session="a26d48e2-3faf-4c1a-a741-71326ad3e84b"):
    head = {
        "sessionId": session,
        "projectHash": "c8ef71",
        "startTime": iso(0),
        "lastUpdated": iso(0),
        "kind": "main",
    }
    context = {"id": "m", "timestamp": iso(0), "type": "user", "content": [{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}]}  # fmt: skip

    def message(step, kind, text, *calls):
        content = [{"text": text}] if kind == "user" else text
        return {"id": f"g{step}", "timestamp": iso(step), "type": kind, "content": content} | (
            {"toolCalls": list(calls)} if calls else {}
        )

    def call(step, name, given, output, shown):
        told = {
            "functionResponse": {"id": f"c{step}", "name": name, "response": {"output": output}}
        }
        return {"id": f"c{step}", "name": name, "args": given, "result": [told], "status": "success", "timestamp": iso(step), "resultDisplay": shown}  # fmt: skip

    def answered(step, text):
        part = {"functionResponse": {"id": "c", "name": "n", "response": {"output": text}}}
        return {"id": f"f{step}", "timestamp": iso(step), "type": "user", "content": [part]}

    bash = {"command": COMMAND}
    failed = call(3, "run_shell_command", bash, f"<untrusted_context>\nOutput: {FAILED}\nExit Code: 1\n</untrusted_context>", FAILED)  # fmt: skip
    passed = call(8, "run_shell_command", bash, f"<untrusted_context>\nOutput: {PASSED}\n</untrusted_context>", PASSED)  # fmt: skip
    edit = {"file_path": FILE, "instruction": "fix", "old_string": OLD, "new_string": NEW}
    edited = call(6, "replace", edit, "Successfully modified file", {"fileDiff": "Index: retry.py", "fileName": "retry.py"})  # fmt: skip
    messages = [
        message(0, "user", ASKED), message(1, "gemini", FIRST), message(1, "gemini", FIRST, failed), answered(3, FAILED),
        message(4, "gemini", CAUSE), message(4, "gemini", CAUSE, edited), answered(6, "ok"),
        message(7, "gemini", "", passed), answered(8, PASSED), message(9, "gemini", ANSWER),
        message(10, "user", CHOICE), message(11, "gemini", AGREED),
    ]  # fmt: skip
    update = {"$set": {"lastUpdated": iso(0)}}
    lines = [
        head,
        {"$set": {"messages": [context]}},
        *(one for m in messages for one in (m, update)),
    ]
    yield "shop/.project_root", DIRECTORY
    yield "shop/chats/session-2026-09-21T13-33-a26d48e2.jsonl", join(lines)


def gemini_document(session="b26d48e2-3faf-4c1a-a741-71326ad3e84b"):
    """As versions before 0.40 or so wrote it: the same messages in one document."""
    *_, (_, text) = gemini_cli(session)
    lines = [json.loads(line) for line in text.splitlines()]
    latest = {line["id"]: line for line in lines if "id" in line}
    document = lines[0] | {"messages": list(latest.values())}
    yield "shop/.project_root", DIRECTORY
    yield "shop/chats/session-2026-09-21T13-33-b26d48e2.json", json.dumps(document, indent=2)


def opencode(session="ses_df89b4be3ffebYGAB1dbMr7ukB"):
    def info(step, role, **fields):
        return {
            "id": f"msg_{step:03}",
            "sessionID": session,
            "role": role,
            "time": {"created": at(step)},
        } | fields

    def part(step, kind, **fields):
        return {"id": f"prt_{session}_{step}_{kind}", "type": kind, "sessionID": session} | fields

    def text(step, said):
        return part(step, "text", text=said, time={"start": at(step), "end": at(step)})

    def tool(step, name, given, output, **metadata):
        state = {"status": "completed", "input": given, "output": output, "metadata": metadata, "time": {"start": at(step), "end": at(step)}}  # fmt: skip
        return part(step, "tool", tool=name, callID=f"call_{step}", state=state)

    def user(step, said):
        added = part(step, "file-text", text="<file>retry.py</file>") | {
            "type": "text",
            "synthetic": True,
        }
        return {"info": info(step, "user"), "parts": [part(step, "text", text=said), added]}

    def agent(step, finish, *parts):
        begun, ended = part(step, "step-start"), part(step, "step-finish", reason=finish)
        return {
            "info": info(step, "assistant", finish=finish, parentID="m"),
            "parts": [begun, *parts, ended],
        }

    bash = {"command": COMMAND}
    edit = {"filePath": FILE, "oldString": OLD, "newString": NEW}
    document = {
        "info": {"id": session, "directory": DIRECTORY, "title": "New session - 2026-09-21T13:33:20.000Z", "time": {"created": START}},
        "messages": [
            user(0, f'"{ASKED}"'), agent(1, "tool-calls", text(1, FIRST), tool(3, "bash", bash, FAILED, exit=1)),
            agent(4, "tool-calls", text(4, CAUSE), tool(6, "edit", edit, "Edit applied successfully.")),
            agent(7, "tool-calls", tool(8, "bash", bash, PASSED, exit=0)), agent(9, "stop", text(9, ANSWER)),
            user(10, CHOICE), agent(11, "stop", text(11, AGREED)),
        ],
    }  # fmt: skip
    yield "export.json", json.dumps(document, indent=2)


def cursor(session="e13fc9ba-0fe8-455e-b069-a0eb0b374502"):
    def typed(text):
        added = "<manually_attached_skills>\nskills\n</manually_attached_skills>\n<timestamp>Monday, Sep 21, 2026, 9:33 AM (UTC-4)</timestamp>"
        return {"role": "user", "message": {"content": [{"type": "text", "text": f"{added}\n<user_query>\n{text}\n</user_query>"}]}}  # fmt: skip

    def says(text, *calls):
        parts = [{"type": "text", "text": text}] if text else []
        used = [{"type": "tool_use", "name": name, "input": given} for name, given in calls]
        return {"role": "assistant", "message": {"content": [*parts, *used]}}

    shell = ("Shell", {"command": COMMAND, "working_directory": DIRECTORY})
    edit = ("StrReplace", {"path": FILE, "old_string": OLD, "new_string": NEW})
    ended = {"type": "turn_ended", "status": "success"}
    yield f"projects/home-dev-shop/agent-transcripts/{session}/{session}.jsonl", join([
        typed(ASKED), says(FIRST, shell), says(CAUSE, edit), says("", shell), says(ANSWER), ended,
        typed(CHOICE), says(AGREED), ended,
    ])  # fmt: skip


def aider():
    block = (
        f"src/retry.py\n```python\n<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE\n```\n"
    )
    yield (
        "shop/.aider.chat.history.md",
        (
            "\n# aider chat started at 2026-09-21 13:33:20\n\n"
            "> Aider v0.86.0  \n> Added src/retry.py to the chat.  \n"
            "\n#### /add src/retry.py  \n> Added src/retry.py to the chat  \n"
            f"\n#### {ASKED}  \n\n{CAUSE}\n\n{block}\n{ANSWER}\n\n"
            "> Tokens: 2.1k sent, 200 received.  \n> Applied edit to src/retry.py  \n> Commit 1a2b3c4 fix: retry  \n"
            f"\n#### {CHOICE}  \n\n{AGREED}\n\n#### In short\n\nJSON lines.\n\n> Tokens: 2.2k sent, 20 received.  \n"
        ),
    )


def pi(session="01a2189b-4956-7156-9d0e-5f6917570ed1"):
    def line(step, number=0, kind="message", **fields):
        name = f"{step:06x}{number:02x}"
        return {"type": kind, "id": name, "parentId": None, "timestamp": iso(step)} | fields

    def says(step, role, *content, number=0, **fields):
        message = {"role": role, "content": list(content), "timestamp": at(step)} | fields
        return line(step, number, message=message)

    def text(said):
        return {"type": "text", "text": said}

    def calls(step, said, name, given):
        parts = [text(said)] if said else []
        call = {"type": "toolCall", "id": f"call_{session}_{step}", "name": name, "arguments": given}  # fmt: skip
        return says(step, "assistant", *parts, call, stopReason="toolUse")

    def result(step, of, name, said, *, is_error=False):
        use = {"toolCallId": f"call_{session}_{of}", "toolName": name, "isError": is_error}
        return says(step, "toolResult", text(said), number=1, **use)

    bash, edit = {"command": COMMAND}, {"path": FILE, "edits": [{"oldText": OLD, "newText": NEW}]}
    told = [
        {"type": "session", "version": 3, "id": session, "timestamp": iso(0), "cwd": DIRECTORY},
        line(0, 1, "model_change", provider="scripted", modelId="m"),
        says(0, "system", text("You are a coding assistant."), number=2),
        says(0, "user", text(ASKED), number=3),
        line(0, 4, "custom_message", customType="memd", content="<recalled-memory>", display=False),
        calls(1, FIRST, "bash", bash),
        result(3, 1, "bash", f"{FAILED}\n\nCommand exited with code 1", is_error=True),
        calls(4, CAUSE, "edit", edit), result(6, 4, "edit", "Successfully replaced 1 block(s)."),
        calls(7, "", "bash", bash), result(8, 7, "bash", PASSED),
        says(9, "assistant", text(ANSWER), stopReason="stop"),
        says(10, "user", text(CHOICE)), says(11, "assistant", text(AGREED), stopReason="stop"),
    ]  # fmt: skip
    yield f"--home-dev-shop--/2026-09-21T13-33-20-000Z_{session}.jsonl", join(told)


TOLD_WHOLE = {
    "claude-code": claude_code, "codex": codex, "copilot": copilot, "gemini-cli": gemini_cli, "opencode": opencode,
    "pi": pi,
}  # fmt: skip
"""Clients whose files tell all of the session."""
TOLD_IN_PART = {"cursor": cursor, "aider": aider}
"""Those that leave out what a command said."""


def write(folder, files):
    """Write (name, text) below a folder; return the path of the last."""
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path
