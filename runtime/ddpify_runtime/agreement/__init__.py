"""Ranks that go apart: random states, checks of what they do alike, and what happens when one fails."""
