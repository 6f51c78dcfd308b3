"""From exceptions to problem responses."""

from __future__ import annotations

import logging

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from cosyvoice_worker.server import problems
from cosyvoice_worker.server.body import LingeringResponse
from cosyvoice_worker.server.context import REQUEST_ID
from cosyvoice_worker.server.problems import CONTENT_TYPE, Problem

# The body of these requests was not read to its end.
_UNREAD = frozenset({"body-too-large", "body-timeout", "coded-body", "too-many-bodies", "two-lengths"})

log = logging.getLogger(__name__)


def problem_response(problem: Problem, request: Request) -> Response:
    """The response for a problem met by `request`."""
    document = problem.document(request.url.path, getattr(request.state, REQUEST_ID))
    headers = {} if problem.retry_after is None else {"retry-after": str(problem.retry_after)}
    if problem.challenge is not None:
        headers["www-authenticate"] = problem.challenge
    if "allowed" in problem.members:
        headers["allow"] = str(problem.members["allowed"])
    kind = LingeringResponse if problem.kind in _UNREAD else Response
    return kind(msgspec.json.encode(document), problem.status, headers, CONTENT_TYPE)


async def _on_problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise error
    return problem_response(error, request)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """What the router finds: no such path, or not with this method."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        problem = problems.method_not_allowed(request.method, ", ".join(sorted(allowed.split(", "))))
    else:
        problem = problems.not_found(request.url.path)
    return problem_response(problem, request)


async def _on_disconnect(_request: Request, _error: Exception) -> Response:
    """Nobody is there to read it; the server drops it."""
    return Response(status_code=499)


async def _on_exception(request: Request, _error: Exception) -> Response:
    """A mistake of ours. The server logs it with its traceback."""
    log.error("a request failed unexpectedly", extra={"request_id": getattr(request.state, REQUEST_ID)})
    return problem_response(problems.internal(), request)


HANDLERS: dict[type[Exception], ExceptionHandler] = {
    Problem: _on_problem,
    HTTPException: _on_http_exception,
    ClientDisconnect: _on_disconnect,
    Exception: _on_exception,
}
