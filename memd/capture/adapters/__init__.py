"""One file per client: its payloads in, memd's events out."""
