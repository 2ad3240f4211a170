"""Tests of the demo, started as its users start it."""
