"""Runs as traces, sent by OTLP over HTTP. Nothing of OpenTelemetry is imported before that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from labmates.errors import UsageError, without_password
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates_doors.exports.recorded import Recorded

_AT_ONCE: Final = 64
"""Spans of a request: each call's span has its whole prompt."""


def send_spans(store: Store, out: str, runs: Callable[[], Iterable[RunRecord]]) -> int:
    """Send each run as a trace to a collector and return the number of runs.

    The address is that of the collector (``http://localhost:4318``); headers, certificates, timeout and compression are
    read from the environment variables of OpenTelemetry's exporter (``OTEL_EXPORTER_OTLP_HEADERS`` and so on).

    Raises `UsageError` if there is no run, the collector does not take the spans, or the extra is missing.
    """
    if not out.startswith(("http://", "https://")):
        raise UsageError(f"--out: '{out}' is no address of a collector (try http://localhost:4318)")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ModuleNotFoundError as error:
        raise UsageError("OpenTelemetry is not installed: pip install 'labmates-doors[otel]'") from error
    from labmates_doors.exports.spans import Spans

    faults: list[str] = []
    log = logging.getLogger("opentelemetry")
    log.addHandler(handler := _Faults(faults))
    exporter = OTLPSpanExporter(f"{out.rstrip('/')}/v1/traces")
    number = 0
    try:
        for run in runs():
            spans = iter(Spans(Recorded(store, run)))
            while some := list(islice(spans, _AT_ONCE)):
                if exporter.export(some) is not SpanExportResult.SUCCESS:
                    reason = without_password(faults[-1])
                    raise UsageError(f"the collector does not take run {run.id}: {reason}")
            number += 1
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
        log.removeHandler(handler)
    if not number:
        raise UsageError("no started run is chosen, so there is nothing to send")
    return number


class _Faults(logging.Handler):
    """Collects what the exporter logs; its result has no reason."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(record.getMessage().splitlines()[0])
