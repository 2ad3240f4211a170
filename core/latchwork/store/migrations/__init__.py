"""The schema's versions, oldest first; ``latchwork.store.migrate`` runs them."""
