"""Every error a client can meet, as RFC 9457 problem details: the one place that holds their words.

A Problem is raised by what finds it and turned into a response by the application; nothing else makes error bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

TYPE_PREFIX = "https://cosyvoice.dev/problems/"
CONTENT_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 - RFC 9457's own word
    """One error: `kind` ends its type URI and names it in metrics; `members` are the fields beyond RFC 9457's own."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        retry_after: int | None = None,
        challenge: str | None = None,
        **members: object,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.challenge = challenge
        self.members = members

    def document(self, instance: str, request_id: str) -> dict[str, object]:
        """The body: `instance` is the path that was asked for."""
        return {
            "type": TYPE_PREFIX + self.kind,
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "requestId": request_id,
            **self.members,
        }


# ----- who asks -------------------------------------------------------------------------------------------------------


def unauthorized(*, sent: bool) -> Problem:
    detail = "the API key is none of those that are taken here" if sent else "an API key is needed"
    challenge = 'Bearer realm="cosyvoice"' + (', error="invalid_token"' if sent else "")
    return Problem(401, "unauthorized", f"{detail}: send the header 'Authorization: Bearer KEY'", challenge=challenge)


def no_api_keys() -> Problem:
    detail = "nobody can be let in: spec.access.apiKeysSecret names a Secret without a key that can be used"
    return Problem(503, "no-api-keys", detail, retry_after=60)


# ----- the request's bytes --------------------------------------------------------------------------------------------


def body_too_large(limit: int) -> Problem:
    return Problem(413, "body-too-large", f"the body is over the limit of {limit:,} bytes", limit=limit)


def two_lengths() -> Problem:
    detail = "the length of the body is told twice: send Content-Length or Transfer-Encoding, not both"
    return Problem(400, "two-lengths", detail)


def coded_body(coding: str) -> Problem:
    return Problem(415, "coded-body", f"the body is coded ({coding[:63]!r}): send it without Content-Encoding")


def too_many_bodies(limit: int) -> Problem:
    detail = f"the bodies that are being read hold more than {limit:,} bytes together; try again in 1 s"
    return Problem(429, "too-many-bodies", detail, retry_after=1, limit=limit)


def body_timeout(seconds: float) -> Problem:
    return Problem(408, "body-timeout", f"the body did not arrive within {seconds:g} s")


def not_utf8(position: int) -> Problem:
    return Problem(400, "not-utf-8", f"the body is not UTF-8: wrong byte at position {position}", position=position)


def invalid_json(reason: str) -> Problem:
    return Problem(400, "invalid-json", f"the body is not JSON: {reason}")


def invalid_request(errors: Sequence[str]) -> Problem:
    return Problem(400, "invalid-request", "; ".join(errors), errors=list(errors))


# ----- what it asks for -----------------------------------------------------------------------------------------------


def text_empty() -> Problem:
    return Problem(400, "text-empty", "input is empty: there is nothing to speak", field="input")


def nothing_to_speak() -> Problem:
    detail = "input has no letter or digit: there is nothing to speak"
    return Problem(400, "nothing-to-speak", detail, field="input")


def text_too_long(field: str, characters: int, limit: int) -> Problem:
    detail = f"{field} has {characters:,} characters, over the limit of {limit:,}"
    return Problem(413, "text-too-long", detail, field=field, limit=limit, actual=characters)


def unsupported_format(actual: str, supported: Sequence[str]) -> Problem:
    detail = f"response_format {actual[:63]!r} is not supported; supported are: {', '.join(supported)}"
    return Problem(400, "unsupported-format", detail, field="response_format", supported=list(supported))


def speed_with_stream(speed: float) -> Problem:
    detail = f"speed {speed:g} cannot be streamed: leave speed at 1 or set stream to false"
    return Problem(400, "speed-with-stream", detail, field="speed")


def unknown_voice(name: str, voices: Sequence[str]) -> Problem:
    detail = f"there is no voice {name[:63]!r}; there are: {', '.join(voices) or 'none'}"
    return Problem(404, "unknown-voice", detail, field="voice", voices=list(voices))


# ----- the worker's state ---------------------------------------------------------------------------------------------


def not_ready(phase: str, retry_after: int) -> Problem:
    detail = f"the worker is not ready: it is in phase {phase}; try again in {retry_after} s"
    return Problem(503, "not-ready", detail, retry_after=retry_after, phase=phase)


def queue_full(limit: int, retry_after: int) -> Problem:
    detail = f"the queue of {limit} requests is full; try again in {retry_after} s"
    return Problem(429, "queue-full", detail, retry_after=retry_after, limit=limit)


def deadline_passed(seconds: float) -> Problem:
    detail = f"the request was not finished within {seconds:g} s"
    return Problem(504, "deadline-passed", detail, limit=seconds)


def engine_died(retry_after: int) -> Problem:
    detail = f"the engine process ended while the request was waiting for it; try again in {retry_after} s"
    return Problem(503, "engine-died", detail, retry_after=retry_after)


def stopping(retry_after: int) -> Problem:
    return Problem(503, "stopping", "the worker is being stopped; try again", retry_after=retry_after)


def synthesis_failed(status: int, reason: str, message: str) -> Problem:
    return Problem(status, "synthesis-failed", message, retry_after=1 if status == 503 else None, reason=reason)


# ----- ends that no client sees as a response, counted under their kind -----------------------------------------------


def client_gone() -> Problem:
    return Problem(499, "client-gone", "the client closed the connection")


def client_too_slow(detail: str) -> Problem:
    return Problem(499, "client-too-slow", detail)


# ----- the address ----------------------------------------------------------------------------------------------------


def not_found(path: str) -> Problem:
    return Problem(404, "not-found", f"there is nothing at {path[:200]}; /docs tells what there is")


def method_not_allowed(method: str, allowed: str) -> Problem:
    return Problem(405, "method-not-allowed", f"{method[:20]} is not allowed here; allowed: {allowed}", allowed=allowed)


def internal() -> Problem:
    return Problem(500, "internal-error", "the worker failed unexpectedly; its log says more under this request id")
