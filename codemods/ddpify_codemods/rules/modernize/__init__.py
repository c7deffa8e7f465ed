"""Old spellings in programs for XLA: rewritten with --modernize, else told."""
