"""Access control for the pages.

The pages show hostile texts of models, at an address that all programs on this machine and all web sites can try. So
requests need the token that the viewer prints, a Host header of the viewer (a foreign site may resolve its name to
127.0.0.1), and no foreign origin. The browser may load only the viewer's style sheet, scripts and pictures.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labmates.pages.rendering import render
from labmates.util.loopback import LOOPBACK

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of all responses."""
ANSWERS = ("/approval", "/turn", "/judging")
"""Suffixes of the paths that accept forms."""


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(32)


def hosts_of(port: int) -> frozenset[str]:
    """Valid values of the Host header."""
    return frozenset(f"{f'[{host}]' if ':' in host else host}:{port}" for host in LOOPBACK)


class Gate:
    """Passes authorised requests to `app`, and adds `HEADERS` to all responses.

    A request has the `token` as ``?token=`` (then stored in a cookie) or as a bearer token, and one of the `hosts`.
    `once` is a further token for a single request: the address with which a browser is started is visible to all users
    of the machine.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str], *, once: str = "") -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        self._once = once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSockets

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name.decode().lower() not in HEADERS]
                message["headers"] = [*headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return PlainTextResponse("The viewer does not serve this host name.\n", 421)
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        allowed = ["GET", "HEAD", *(["POST"] if scope["path"].endswith(ANSWERS) else [])]
        if scope["method"] not in allowed:
            return PlainTextResponse("The viewer is read-only.\n", 405, {"allow": ", ".join(allowed)})
        if scope["method"] == "POST" and origin is None:
            return PlainTextResponse("Only pages of the viewer may send forms.\n", 403)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = [value for name, value in query if name == "token"]
        if shown and (self._is_right(shown[-1]) or self._is_first(shown[-1])):
            return self._welcome(scope, [(name, value) for name, value in query if name != "token"], host)
        if self._is_right(self._bearer(headers)) or self._is_right(self._cookie(headers, host)):
            return None
        again = scope["path"] + (
            f"?{urlencode(rest)}" if (rest := [pair for pair in query if pair[0] != "token"]) else ""
        )
        # The link must not lead to another site.
        page = render("refused.html", again="/" + again.lstrip("/\\"))
        return Response(page, 401, {"www-authenticate": "Bearer"}, media_type="text/html; charset=utf-8")

    def _welcome(self, scope: Scope, query: list[tuple[str, str]], host: str) -> Response:
        """Store the token in a cookie, and remove it from the address."""
        path = "/" + scope["path"].lstrip("/\\")  # never to //another.site
        response = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        response.set_cookie(_cookie_name(host), self._token, httponly=True, samesite="strict", path="/")
        return response

    def _is_first(self, token: str) -> bool:
        if not self._once or not hmac.compare_digest(token.encode("utf-8", "replace"), self._once.encode()):
            return False
        self._once = ""
        return True

    def _is_right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    @staticmethod
    def _bearer(headers: Headers) -> str:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @staticmethod
    def _cookie(headers: Headers, host: str) -> str:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        cookie = cookies.get(_cookie_name(host))
        return cookie.value if cookie is not None else ""


def _cookie_name(host: str) -> str:
    """The name of the cookie by port: cookies ignore ports, and several viewers may run."""
    return f"labmates-{host.rpartition(':')[2]}"
