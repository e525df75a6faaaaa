"""The front door: MCP in both eras and memd's own control calls, on one Unix socket."""
