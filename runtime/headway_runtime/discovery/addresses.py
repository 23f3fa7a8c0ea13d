"""The addresses that a DNS name stands for, and URLs made of them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

_NOBODY = (socket.EAI_NONAME, socket.EAI_NODATA)
"""The name is known to stand for nothing; other failures say nothing of it."""


async def addresses_of(name: str) -> frozenset[str] | None:
    """The IP addresses of a name; None where they cannot be found out now."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return frozenset() if error.errno in _NOBODY else None
    except OSError:
        return None
    return frozenset(str(address[0]) for _, _, _, _, address in found)


def url_of(address: str, port: int) -> str:
    """URL of an HTTP server, as vllm-router takes and lists it."""
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address  # noqa: PLR2004
    return f"http://{host}:{port}"
