"""Who started this process, and how processes are started."""
