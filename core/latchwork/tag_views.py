"""The tags in use, for facets and suggestions."""

from dataclasses import dataclass

from latchwork.views import BoundedCount, Tag


@dataclass(frozen=True, slots=True)
class TagFacet:
    """A tag and how many stored jobs have it."""

    tag: Tag
    jobs: BoundedCount
