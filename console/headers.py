"""Two things around every answer: the content policy Django 5.2 does not set, and files that suit an async server."""

from __future__ import annotations

from collections.abc import Callable

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

#: No inline script and nothing from another site. Inline style *attributes* carry numbers of bars only.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


Next = Callable[[HttpRequest], HttpResponseBase]


def whole_files(get_response: Next) -> Next:
    """Page assets are small: read them here, in a thread. Streamed from a file they would block the async server."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not isinstance(response, FileResponse):
            return response
        whole = HttpResponse(b"".join(response), status=response.status_code, headers=dict(response.headers))
        response.close()
        return whole

    return middleware


def content_policy(get_response: Next) -> Next:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        if not request.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "private, no-store")  # pages differ by who looks
        return response

    return middleware
