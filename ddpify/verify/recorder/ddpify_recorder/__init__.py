"""What is recorded of a script, and what is changed for its run; see the sitecustomize beside this package."""
