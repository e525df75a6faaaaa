"""Connect memd to coding agents and service managers, and disconnect it again.

Each `install_NAME(host)` and `uninstall_NAME(host)` in claude.py and service.py returns an
`InstallPlan` and changes nothing. The command line shows the plan or carries it out.
"""
