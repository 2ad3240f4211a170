"""What tests of an application use: its jobs over virtual time, and its manifest."""

from latchwork.manifest import ManifestChanged, check_manifest
from latchwork.testing.virtual_time import NeverIdle, VirtualTime

__all__ = ["ManifestChanged", "NeverIdle", "VirtualTime", "check_manifest"]
