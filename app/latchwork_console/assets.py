"""Where templates and static files are, and how static files are addressed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}


def asset_dir(name: str) -> Path:
    """The folder ``templates`` or ``static``: beside this package, or at the checkout's root."""
    here = Path(__file__).resolve().parent
    for root in (here, here.parents[1]):
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(f"the console's {name} folder is missing from this installation")


@dataclass(frozen=True)
class StaticFile:
    """One static file, held in memory."""

    body: bytes
    media_type: str


class StaticFiles:
    """All static files, read once; their addresses carry a digest of all of them.

    The digest is a folder in the address, so that a style sheet's relative links carry it too, and
    browsers may keep every file for ever.
    """

    def __init__(self, root: Path) -> None:
        self._files = {
            path.relative_to(root).as_posix(): StaticFile(
                path.read_bytes(), MEDIA_TYPES.get(path.suffix, "application/octet-stream")
            )
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
        digest = hashlib.sha256()
        for name, file in self._files.items():
            digest.update(f"{name}\0{len(file.body)}\0".encode() + file.body)
        self.digest = digest.hexdigest()[:16]

    def get(self, name: str) -> StaticFile | None:
        """The file of that name, or None."""
        return self._files.get(name)
