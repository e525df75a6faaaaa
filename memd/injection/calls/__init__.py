"""Context in the middle of a session: at a tool call, when one fails, and for subagents."""
