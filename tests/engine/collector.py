"""A collector of traces: takes in spans over OTLP/gRPC, as any collector does."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service


@dataclass(frozen=True)
class Span:
    """A span that came.

    Attributes:
        name: of the span.
        trace: its trace's id, in hexadecimal.
        parent: its parent's id, likewise.
        attributes: what it tells.
        began_ns: nanoseconds since the epoch.
        ended_ns: likewise.
    """

    name: str
    trace: str
    parent: str
    attributes: dict[str, Any]
    began_ns: int
    ended_ns: int


@dataclass
class Collector(service.TraceServiceServicer):  # type: ignore[misc]
    """What came so far.

    Attributes:
        url: where it listens.
        spans: all of them.
        raw: every message as it came over the wire.
    """

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def Export(self, request: Any, _: Any) -> Any:  # noqa: N802 - the protocol's name
        """Take in spans."""
        self.raw.append(request.SerializeToString())
        for of_process in request.resource_spans:
            for of_library in of_process.scope_spans:
                self.spans.extend(map(_span, of_library.spans))
        return messages.ExportTraceServiceResponse()


def _span(told: Any) -> Span:
    return Span(
        told.name,
        told.trace_id.hex(),
        told.parent_span_id.hex(),
        {each.key: _value(each.value) for each in told.attributes},
        told.start_time_unix_nano,
        told.end_time_unix_nano,
    )


def _value(told: Any) -> Any:
    kind = told.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in told.array_value.values]
    return getattr(told, kind)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens on loopback; stopped afterwards."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    service.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    collector.url = f"http://127.0.0.1:{port}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(grace=None).wait()
