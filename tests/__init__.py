"""Tests of the three packages."""
