"""What every request must pass and every answer carries, before and around the routes.

Host allow list (against DNS rebinding), same-origin check on everything that writes, a bound on
query strings, and one set of headers, errors included. Why the same-origin check is by headers
alone: ``docs/decisions/0008-same-origin-by-headers.md``.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from latchwork.errors import LatchworkError

MAX_BODY_BYTES = 65_536
MAX_QUERY_BYTES = 8_192
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TYPE = "application/x-www-form-urlencoded"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; "
        "object-src 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class UnsafeAddress(LatchworkError):
    """The console was asked to listen where others could reach it without signing in."""

    def __init__(self, host: str) -> None:
        super().__init__(
            "the console has no sign-in yet, so it listens on this machine only: use 127.0.0.1, "
            f"::1 or localhost instead of {host!r}, and reach it through a tunnel"
        )
        self.host = host


def check_loopback(host: str) -> None:
    """Refuse to listen anywhere but on loopback.

    Raises:
        UnsafeAddress: ``host`` is reachable from other machines.
    """
    if host == "localhost":
        return
    address = _ip_address(host)
    if address is None or not address.is_loopback:
        raise UnsafeAddress(host)


def harden(headers: MutableHeaders) -> None:
    """Put the security headers on an answer; it is not stored anywhere unless it says so itself."""
    for name, value in HEADERS.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "no-store")


class SecurityMiddleware:
    """Refuses requests that must not reach a route, and hardens every answer."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self._allowed_hosts = frozenset(host.lower().rstrip(".") for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                harden(MutableHeaders(scope=message))
            await send(message)

        try:
            self._check(scope)
        except HTTPException as refusal:
            answer = PlainTextResponse(f"{refusal.detail}\n", refusal.status_code)
            await answer(scope, receive, send_hardened)
            return
        await self.app(scope, receive, send_hardened)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = _single_host(headers, scope)
        if not self._knows(host):
            raise HTTPException(
                421,
                "This console does not answer to that host name. Use localhost, its IP address, "
                "or name the host in allowed_hosts.",
            )
        if len(scope.get("query_string", b"")) > MAX_QUERY_BYTES:
            raise HTTPException(414, f"The query is longer than {MAX_QUERY_BYTES:,} bytes.")
        if scope["method"] not in SAFE_METHODS:
            check_same_origin(headers)

    def _knows(self, host: str) -> bool:
        name = _host_name(host)
        # A literal address cannot be rebound to another machine; only names can.
        return name == "localhost" or _ip_address(name) is not None or name in self._allowed_hosts


def check_same_origin(headers: Headers) -> None:
    """Let a writing request pass only if this console's own page, or no browser page, sent it.

    Raises:
        HTTPException: 403 from another site or of unknown origin, 415 with another content type.
    """
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None:
        same = site in ("same-origin", "none")
    else:
        same = origin is not None and urlsplit(origin).netloc.lower() == headers["host"].lower()
    if not same:
        raise HTTPException(
            403,
            "Refused: this request did not come from this console's own pages. "
            "A script sends the header Sec-Fetch-Site: none.",
        )
    content_type = headers.get("content-type", FORM_TYPE).partition(";")[0].strip().lower()
    if content_type != FORM_TYPE:
        raise HTTPException(415, f"Only {FORM_TYPE} is accepted.")


def _single_host(headers: Headers, scope: Scope) -> str:
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        raise HTTPException(400, "A request needs exactly one Host header.")
    if not scope["path"].startswith("/"):
        raise HTTPException(400, "A request's target must be a path.")
    return hosts[0]


def _host_name(host: str) -> str:
    """The name part of a Host header, without port, brackets and final dot, in lower case."""
    if any(char in host for char in "@/\\?#"):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
