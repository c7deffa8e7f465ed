"""The divided forward: what is known of it, what is active while it runs."""
