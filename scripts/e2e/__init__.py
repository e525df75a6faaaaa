"""memd with the real Claude Code and a scripted model: `scripts/e2e-claude`."""
