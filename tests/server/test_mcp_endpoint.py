import subprocess
import sys

WITHOUT_MCP = """
import sys
import memd.daemon.app
print(sorted(name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types"}))
"""


def test_a_daemon_imports_the_sdk_only_once_a_client_speaks_mcp():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MCP], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
