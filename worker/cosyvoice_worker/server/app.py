"""The ASGI application of both ports."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cosyvoice_worker.server import docs_page, openapi, problems
from cosyvoice_worker.server.context import STRANGER, RequestContext
from cosyvoice_worker.server.errors import HANDLERS, problem_response
from cosyvoice_worker.server.pages import Pages
from cosyvoice_worker.server.speech import Speech
from cosyvoice_worker.server.state import FrontState


async def _openapi(_request: Request) -> Response:
    return Response(openapi.encoded(), media_type="application/json")


async def _docs(_request: Request) -> Response:
    return Response(docs_page.page(), media_type="text/html")


def build_app(
    state: FrontState, pages: Pages, speech: Speech, admin_port: int, guard: Callable[[ASGIApp], ASGIApp]
) -> ASGIApp:
    """One application: what comes in on `admin_port` is for the operator and Prometheus, all else for users.

    What is for users stands behind `guard`.
    """
    open_api = Starlette(
        routes=[
            *pages.api_routes(),
            Route("/v1/audio/speech", speech, methods=["POST"]),
            Route("/openapi.json", _openapi, methods=["GET"]),
            Route("/docs", _docs, methods=["GET"]),
        ],
        exception_handlers=HANDLERS,
    )
    admin = Starlette(routes=pages.admin_routes(), exception_handlers=HANDLERS)
    for router in (open_api.router, admin.router):
        router.redirect_slashes = False  # the address would be made of the Host header, which is the client's
    api = guard(open_api)

    async def by_port(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy before us may have gone by the other one: what follows is not what it took for the next request.
            scope["state"][STRANGER] = True
            await problem_response(problems.two_lengths(), Request(scope))(scope, receive, send)
        else:
            await (admin if scope["server"][1] == admin_port else api)(scope, receive, send)

    return RequestContext(by_port, state)
