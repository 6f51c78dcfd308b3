"""A request's trace, from the front to a collector that listens on loopback."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cosyvoice_worker.server.traces import tracing
from cosyvoice_worker.tracing.exporter import Exporter
from cosyvoice_worker.tracing.settings import TracingSettings
from cosyvoice_worker.tracing.span import Span
from dev.waiting import wait_for
from tests.unit.server import fake_engine
from tests.unit.server.collector import Collector, collecting
from tests.unit.server.running_front import running_front

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


async def speak(environment: dict[str, str], script: fake_engine.Script = fake_engine.good, **headers: str) -> None:
    """One streamed request to a front with this environment, which has ended when this returns."""
    body = json.dumps({"input": "Hello.", "stream": True, "voice": "anna"}).encode()
    with tracing(environment, "narrator") as tracer:
        async with running_front(script, tracer=tracer) as front:
            await front.ask("POST", "/v1/audio/speech", body, **headers)


async def test_a_request_is_a_trace_of_its_wait_and_its_synthesis_up_to_the_first_audio(collector: Collector) -> None:
    await speak({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address})

    spans = collector.spans()
    assert spans.keys() == {"POST /v1/audio/speech", "queue", "synthesis"}
    whole, queue, synthesis = spans["POST /v1/audio/speech"], spans["queue"], spans["synthesis"]
    assert "parentSpanId" not in whole
    assert {queue["parentSpanId"], synthesis["parentSpanId"]} == {whole["spanId"]}
    assert {span["traceId"] for span in spans.values()} == {whole["traceId"]}
    (first,) = synthesis["events"]
    assert first["name"] == "first audio"
    times = [
        whole["startTimeUnixNano"],
        queue["endTimeUnixNano"],
        synthesis["startTimeUnixNano"],
        first["timeUnixNano"],
        synthesis["endTimeUnixNano"],
        whole["endTimeUnixNano"],
    ]
    assert times == sorted(times, key=int)
    told = {one["key"]: one["value"] for one in whole["attributes"]}
    assert told["cosyvoice.outcome"] == {"stringValue": "ok"}
    assert told["cosyvoice.characters"] == {"intValue": "6"}
    assert told["cosyvoice.stream"] == {"boolValue": True}
    assert "Hello" not in json.dumps(collector.received[0][2])


async def test_the_client_s_trace_goes_on(collector: Collector) -> None:
    await speak({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}, traceparent=f"00-{TRACE}-{PARENT}-01")

    whole = collector.spans()["POST /v1/audio/speech"]
    assert (whole["traceId"], whole["parentSpanId"], whole["kind"]) == (TRACE, PARENT, 2)


async def test_a_client_that_wants_no_trace_gets_none(collector: Collector) -> None:
    await speak({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}, traceparent=f"00-{TRACE}-{PARENT}-00")

    assert collector.received == []


async def test_a_failure_that_is_the_worker_s_is_an_error_in_the_trace(collector: Collector) -> None:
    await speak({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}, fake_engine.dying_after(0))

    whole = collector.spans()["POST /v1/audio/speech"]
    assert whole["status"]["code"] == 2
    assert whole["status"]["message"]


async def test_the_environment_says_where_to_and_who(collector: Collector) -> None:
    await speak(
        {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.address}/my/traces",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=speech%20team",
            "OTEL_SERVICE_NAME": "narration",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        }
    )

    path, headers, document = collector.received[0]
    resource = {
        one["key"]: one["value"]["stringValue"] for one in document["resourceSpans"][0]["resource"]["attributes"]
    }
    assert (path, headers["x-tenant"]) == ("/my/traces", "speech team")
    assert resource["service.name"] == "narration"
    assert resource["deployment.environment"] == "test"
    assert resource["cosyvoice.model"] == "narrator"


async def test_a_collector_that_refuses_costs_no_speech(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    collector.answers = [400]

    await speak({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address})

    assert f"3 spans are lost: {collector.address}/v1/traces: it answered 400" in caplog.text


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "expected an address such as http://collector:4318"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'; traces are sent as http/json",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "token"},
            "OTEL_EXPORTER_OTLP_HEADERS is no list of key=value",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "token=hunter2%0d%0ax:y"},
            "OTEL_EXPORTER_OTLP_HEADERS gives 'token' a value that no header can have",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:many"}, "expected an address such as http://collector:4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[c"}, "expected an address such as http://collector:4318"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none"},
            "No such file or directory",
        ),
    ],
)
def test_variables_that_cannot_be_used_are_told_and_cost_no_speech(
    caplog: pytest.LogCaptureFixture, environment: dict[str, str], words: str
) -> None:
    with tracing(environment, "narrator") as tracer:
        assert tracer is None

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert words in record.getMessage()
    assert "hunter2" not in record.getMessage()


@pytest.mark.parametrize("environment", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}])
def test_without_being_asked_nothing_is_traced(environment: dict[str, str]) -> None:
    with tracing(environment, "narrator") as tracer:
        assert tracer is None


def test_without_being_asked_nothing_of_it_is_imported() -> None:
    script = (
        "import sys; from cosyvoice_worker.server import serving, traces\n"
        "with traces.tracing({}, 'narrator'): print([name for name in sys.modules if 'trac' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert "cosyvoice_worker.tracing" not in done.stdout
    assert "speech_trace" not in done.stdout


def test_what_the_collector_cannot_take_now_is_sent_again(collector: Collector) -> None:
    collector.answers = [503]
    exporter = Exporter(TracingSettings(endpoint=f"{collector.address}/v1/traces"))

    exporter.export([Span(name="queue", trace=TRACE, id=PARENT, parent=None, start=1.0, end=2.5)])
    wait_for("the spans", lambda: collector.received, timeout=20)
    exporter.close()

    assert collector.answers == []
    assert collector.spans()["queue"]["endTimeUnixNano"] == "2500000000"
