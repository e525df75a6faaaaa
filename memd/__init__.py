"""memd: long-term memory for coding agents. Imports nothing, so that every side door stays light."""

__version__ = "0.1.0"
