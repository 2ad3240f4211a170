"""Latchwork: a job scheduler with leases, latches and an append-only transition log."""
