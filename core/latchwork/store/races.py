"""Races that a transaction may lose without fault: it is simply run again."""


class LostRace(Exception):
    """This transaction met a change it must not act across; ``code`` is what is counted."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
