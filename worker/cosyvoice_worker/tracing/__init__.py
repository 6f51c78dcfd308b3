"""Traces in OpenTelemetry's protocol, OTLP over HTTP in its JSON encoding. Imported only where the environment asks.

settings   the environment's OTEL_* variables
context    the trace that a request belongs to (W3C Trace Context)
span       what happened from when to when
otlp       the same as JSON
exporter   sends it, from a thread of its own

Written here because it is two hundred lines, where OpenTelemetry's packages are 14 MB and a second HTTP client in the
image. https://opentelemetry.io/docs/specs/otlp/#otlphttp, https://www.w3.org/TR/trace-context/.
"""
