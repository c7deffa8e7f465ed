"""For programs by hand that start their own processes, before they are moved to what a launcher starts."""
