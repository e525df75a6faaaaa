"""The daemon: the composition root, its supervisor, status, doctor and backups."""
