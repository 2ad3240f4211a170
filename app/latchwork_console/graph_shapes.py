"""The shape of a drawing and where its parts lie: plain values between folding and drawing."""

from dataclasses import dataclass

BOX_HEIGHT = 46

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shape:
    """All a layout depends on: how many boxes, how wide, and which are joined, parent first."""

    count: int
    box_width: int
    links: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a ``Shape`` lie, from (0, 0) to (``width``, ``height``).

    ``boxes`` are top left corners; ``links`` are the points each link passes, from the right side
    of its parent to the left side of its child. ``plain`` says that the engine did not draw it.
    """

    width: float
    height: float
    boxes: tuple[Point, ...]
    links: tuple[tuple[Point, ...], ...]
    plain: bool = False
