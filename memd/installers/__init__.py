"""Puts memd where agents and service managers look for it, and takes exactly that away again.

One file per place. Each has `install(place) -> Plan` and `uninstall(place) -> Plan`, which look and
decide but change nothing; the command line shows a plan, or carries it out (`plan.py`, `files.py`).
"""
