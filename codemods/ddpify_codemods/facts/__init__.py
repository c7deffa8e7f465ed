"""One read of a script: what it is. Nothing here changes anything."""
