"""Benchmarks: figures come from here, never from the tests. See README.md."""
