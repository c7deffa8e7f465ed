"""What the numbers of a program are made of, followed through its loops, functions, classes and files."""
