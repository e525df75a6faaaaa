"""Readers of the session files of other clients: each turns lines into the payloads that its client's hooks send."""
