"""What a crash leaves of a SQLite file: every such image must open and pass the audit."""
