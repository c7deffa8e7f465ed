"""What turns a program of one kind into one of another: a file for each way. The engine chooses among them."""
