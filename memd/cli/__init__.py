"""The command line, one file per command. Talks to the daemon over the socket."""
