"""What is told of its own accord in the middle of a session: at a tool's call, when one fails, and to subagents."""
