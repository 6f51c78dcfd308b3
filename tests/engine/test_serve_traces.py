"""The whole worker sends the trace of a request where its environment names a collector."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.engine.serving_worker import ServingWorker
from tests.unit.server.collector import collecting

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_request_is_traced_from_its_client_to_its_end(tiny_model_dir: Path, tmp_path: Path) -> None:
    with (
        collecting() as collector,
        ServingWorker(tmp_path, "--model", tiny_model_dir, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address) as worker,
    ):
        worker.until_ready()
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "hello"}
        worker.api.post("/v1/audio/speech", json={"input": "The quick brown fox.", "stream": True}, headers=headers)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.end() == 0

    spans = collector.spans()
    whole, synthesis = spans["POST /v1/audio/speech"], spans["synthesis"]
    assert (whole["traceId"], whole["parentSpanId"]) == (TRACE, PARENT)
    assert int(whole["startTimeUnixNano"]) <= int(spans["queue"]["endTimeUnixNano"])
    assert int(synthesis["startTimeUnixNano"]) < int(synthesis["events"][0]["timeUnixNano"])
    lines = [json.loads(line) for line in (tmp_path / "worker.log").read_text().splitlines()]
    (speech,) = [line for line in lines if line["message"] == "speech"]
    assert (speech["trace_id"], speech["request_id"]) == (TRACE, "hello")
