"""For programs of one process, with torch alone: what an expert writes by hand."""
