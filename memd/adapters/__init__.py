"""Other programs' ways to ask a memory, answered by the daemon through its control socket.

`memory_tool` gives Anthropic's memory tool memd's memories as files; `bench_socket` answers
agent-memory-bench. Nothing else in memd imports them.
"""
