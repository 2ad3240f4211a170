"""Simulated worlds: the real node logic and the real store over virtual time, from one seed."""
