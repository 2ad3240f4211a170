"""The store: the only place with SQL. Plain functions on a connection."""
