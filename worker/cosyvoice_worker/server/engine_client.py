"""The front's side of the channel (channel.py) on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec

from cosyvoice_worker.channel import LENGTH, MAX_FRAME_BYTES, EngineMessage, FrontMessage, decode_engine, encode


class ChannelError(Exception):
    """The engine wrote what is no message: it cannot be understood any more."""


class EngineClient:
    """Sends without waiting: what the front sends is small, and the engine's reader thread never stops reading."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, sock: socket.socket) -> EngineClient:
        """Take over the front's end of the socket pair."""
        return cls(*await asyncio.open_unix_connection(sock=sock))

    def send(self, message: FrontMessage) -> None:
        """Send; without effect when the engine is gone, which `messages` tells."""
        if not self._writer.is_closing():
            self._writer.write(encode(message))

    async def messages(self) -> AsyncIterator[EngineMessage]:
        """Every message until the engine hangs up. Raises ChannelError for what is none."""
        while True:
            try:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                if length > MAX_FRAME_BYTES:
                    raise ChannelError(f"it sent a message of {length:,} bytes, over the limit of {MAX_FRAME_BYTES:,}")
                body = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            try:
                message = decode_engine(body)
            except msgspec.MsgspecError as error:
                raise ChannelError(f"it sent a message that cannot be decoded: {error}") from error
            yield message

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
