"""Opens MCP sessions, and imports the MCP SDK when the first client needs one.

The import takes about half of a daemon's start and of its memory; a daemon that only hooks and the command line
talk to does without.
"""

import gc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from memd.server.scope import Caller
from memd.server.service import MemoryService

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from memd.server.mcp_session import McpSession
    from memd.server.tools import ToolHandlers


class McpEndpoint:
    """The MCP server, one for all connections."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._loading = anyio.Lock()
        self._tools: ToolHandlers | None = None
        self._server: Server[Any] | None = None

    @property
    def calls(self) -> int:
        """Calls of tools since the start."""
        return self._tools.calls if self._tools else 0

    @property
    def failures(self) -> int:
        """Return the calls that failed."""
        return self._tools.failures if self._tools else 0

    async def open_session(
        self,
        caller: Caller,
        send: Callable[[bytes], Awaitable[None]],
        end_request: Callable[[], None],
    ) -> "McpSession":
        """Make the session of one client; the first one waits for the import."""
        async with self._loading:
            if self._server is None or self._tools is None:
                await anyio.to_thread.run_sync(_import_sdk)
                from memd.server.tools import ToolHandlers  # noqa: PLC0415  # see above

                self._tools = ToolHandlers(self._service)
                self._server = self._tools.make_server()
                gc.freeze()  # as at start: a collection that walked the SDK would take 30 ms
        from memd.server.mcp_session import McpSession  # noqa: PLC0415  # see above

        return McpSession(self._server, self._tools, caller, send, end_request)


def _import_sdk() -> None:
    """Import in a worker thread, so that the event loop goes on answering."""
    import memd.server.mcp_session  # noqa: PLC0415
    import memd.server.tools  # noqa: F401, PLC0415
