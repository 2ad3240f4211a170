"""A worker node: claims, runs, keeps leases, reports."""
