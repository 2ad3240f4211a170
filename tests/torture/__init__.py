"""Torture: real processes on real databases under real faults. A red run is always a bug."""
