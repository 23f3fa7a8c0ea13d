"""A minimal DNS query, to see whether the cluster's DNS answers on the node's address."""

import secrets
import socket
import struct

_TIMEOUT_SECONDS = 1.0
_RECURSION_DESIRED = 0x0100
_CODE_MASK = 0x000F
_HEADER = struct.Struct("!6H")  # RFC 1035, 4.1.1
_TYPE_A_CLASS_IN = struct.pack("!2H", 1, 1)


def resolves(server: str, name: str) -> bool:
    """Whether the server answers a query for `name`'s IPv4 address with at least one record."""
    identifier = secrets.randbits(16)
    query = _HEADER.pack(identifier, _RECURSION_DESIRED, 1, 0, 0, 0) + _question(name)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            connection.sendto(query, (server, 53))
            answer = connection.recv(512)
        except OSError:
            return False
    answered, flags, _, records, _, _ = _HEADER.unpack_from(answer)
    return bool(answered == identifier and flags & _CODE_MASK == 0 and records > 0)


def _question(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return labels + b"\0" + _TYPE_A_CLASS_IN
