"""A small embedding model that runs on this machine with numpy: no server, no torch, no network."""
