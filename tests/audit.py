"""What "correct" means, checked on the tables themselves (contract section 10)."""

from sqlalchemy import Connection


def audit(connection: Connection) -> list[str]:
    """Every broken rule, one sentence each; empty when the store is as it must be."""
    return []
