"""Maintenance: small background services, one per file."""
