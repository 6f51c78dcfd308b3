"""What the operator raises.

OperatorError
├── InvalidSettingsError   the operator's own configuration, all errors at once
├── InvalidSpecError       a CosyVoiceModel asks for what cannot be done; the user has to change it
├── InvalidQuantityError   a text is no Kubernetes quantity
└── ClusterError           a request to the API server did not succeed
    ├── NotFoundError      404
    ├── ConflictError      409: the object changed since it was read, or exists already
    ├── RejectedError      400, 403, 413, 422: the server understood and refuses; the same request will be refused again
    ├── TerminatingError   403: the namespace is being deleted, nothing can be created in it any more
    └── UnavailableError   no answer in time, connection lost, 429, 5xx: worth another try
"""

from __future__ import annotations

from collections.abc import Sequence


class OperatorError(Exception):
    """Base of everything the operator raises on purpose."""


class InvalidSettingsError(OperatorError):
    """The operator's configuration is unusable; `problems` has one line for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class InvalidSpecError(OperatorError):
    """`field` (a path such as spec.source.uri) of a CosyVoiceModel is refused; `message` says why and what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class InvalidQuantityError(OperatorError):
    """`text` is no Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f"{text!r} is no quantity: expected a number with an optional suffix such as 500m, 8Gi or 2e9")


class ClusterError(OperatorError):
    """A request did not succeed. `status` is the HTTP code (0: no answer), `message` what the API server said."""

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request}: {status or 'no answer'}: {message}")
        self.request = request
        self.status = status
        self.message = message


class NotFoundError(ClusterError):
    """404."""


class ConflictError(ClusterError):
    """409."""


class RejectedError(ClusterError):
    """400, 403, 413 or 422: the same request will be refused again."""


class TerminatingError(ClusterError):
    """403 because the namespace is being deleted."""


class UnavailableError(ClusterError):
    """No answer, or one that says to come back later."""
