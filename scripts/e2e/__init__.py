"""memd with the real Claude Code and a scripted model: `scripts/end-to-end claude`."""
