"""The daemon's server: MCP in both eras and memd's own control calls, on one Unix socket."""
