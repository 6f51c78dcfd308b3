"""Opening the two listening sockets, with nothing imported that is not compiled into the interpreter."""

from __future__ import annotations

import _socket
import errno

BACKLOG = 512

# What a kernel without IPv6 answers; anything else, a taken port above all, is the caller's to tell.
_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL})


def listen(host: str | None, port: int) -> _socket.socket:
    """A listening, non-blocking socket. `host` None means every address, of both families where there is IPv6.

    Raises OSError when the address cannot be had.
    """
    if host is not None:
        family, kind, protocol, _, address = _socket.getaddrinfo(host, port, 0, _socket.SOCK_STREAM)[0]
        return _bind(_socket.socket(family, kind, protocol), address)
    try:
        return _bind(_socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM), ("::", port))
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
    return _bind(_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM), ("0.0.0.0", port))  # noqa: S104 - a server


def _bind(sock: _socket.socket, address: object) -> _socket.socket:
    try:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        if sock.family == _socket.AF_INET6:
            sock.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        sock.bind(address)  # type: ignore[arg-type]  # getaddrinfo's own address, whose type it does not tell
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
