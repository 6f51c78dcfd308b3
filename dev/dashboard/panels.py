"""What the dashboard shows, row by row. Rates are over Grafana's own interval; `$namespace` and `$model` are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_worker.metrics import FAULTS

RATE = "[$__rate_interval]"
CHOSEN = 'namespace=~"$namespace",model=~"$model"'
MODEL = 'model_namespace=~"$namespace",model=~"$model"'


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Queries with their legends. `unit` is Grafana's name of it. `cgroup_2`: data in version 2 only."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    description: str = ""
    cgroup_2: bool = False


def rate(metric: str, *labels: str) -> str:
    return f"rate(cosyvoice_{metric}{{{','.join((CHOSEN, *labels))}}}{RATE})"


def quantiles(metric: str, *labels: str, by: str = "") -> tuple[tuple[str, str], ...]:
    """Half of what happened took no longer than the first line, nineteen of twenty no longer than the second."""
    group, legend = (f"le, {by}", f" {{{{{by}}}}}") if by else ("le", "")
    buckets = f"sum by ({group}) ({rate(metric + '_bucket', *labels)})"
    return tuple((f"histogram_quantile({share}, {buckets})", f"{name}{legend}") for share, name in QUANTILES)


QUANTILES = ((0.5, "p50"), (0.95, "p95"))
BAD = f'outcome=~"{"|".join(FAULTS)}"'
SOME = 'share="some"'
LOADS = f'cosyvoice_load_duration_seconds_bucket{{{CHOSEN},phase="total",le=~"5.0|10.0|30.0|60.0|120.0|.Inf"}}'
PASSES = "cosyvoice_operator_reconcile_seconds"
MAX_USAGE = (
    'max by (namespace, pod) (container_memory_max_usage_bytes{container="worker"})'
    ' / max by (namespace, pod) (container_spec_memory_limit_bytes{container="worker"} > 0)'
    f" and on (namespace, pod) cosyvoice_ready{{{CHOSEN}}}"
)

ROWS: dict[str, tuple[Panel, ...]] = {
    "Models": (
        Panel(
            title="Models by reason",
            unit="short",
            queries=(("sum by (reason) (cosyvoice_operator_models)", "{{reason}}"),),
        ),
        Panel(
            title="Where each model stands",
            unit="short",
            queries=(
                (
                    f"max by (model_namespace, model, reason) (cosyvoice_operator_model_reason{{{MODEL}}})",
                    "{{model_namespace}}/{{model}} {{reason}}",
                ),
            ),
        ),
        Panel(
            title="Workers by what they serve",
            unit="short",
            queries=(
                (
                    f"count by (namespace, model, version, revision, device, dtype) (cosyvoice_model_info{{{CHOSEN}}})",
                    "{{namespace}}/{{model}} {{version}} ({{revision}}, {{device}}, {{dtype}})",
                ),
            ),
        ),
        Panel(
            title="Workers ready",
            unit="short",
            queries=((f"sum by (namespace, model) (cosyvoice_ready{{{CHOSEN}}})", "{{namespace}}/{{model}}"),),
        ),
        Panel(
            title="Versions taken out of service, in an hour",
            unit="short",
            queries=(
                (
                    "sum by (model_namespace, model, reason)"
                    f" (increase(cosyvoice_operator_rollbacks_total{{{MODEL}}}[1h])) or vector(0)",
                    "{{model_namespace}}/{{model}} {{reason}}",
                ),
            ),
        ),
    ),
    "Requests": (
        Panel(
            title="Requests by outcome",
            unit="reqps",
            queries=((f"sum by (outcome) ({rate('requests_total')})", "{{outcome}}"),),
        ),
        Panel(
            title="Error ratio",
            unit="percentunit",
            description="Failures that the worker is to blame for; what a client did wrong is none.",
            queries=((f"sum({rate('requests_total', BAD)}) / sum({rate('requests_total')})", "of all requests"),),
        ),
        Panel(
            title="Time to first audio",
            unit="s",
            queries=quantiles("time_to_first_audio_seconds", by="mode"),
        ),
        Panel(title="Time of a whole request", unit="s", queries=quantiles("request_seconds", 'outcome="ok"')),
        Panel(
            title="Real-time factor",
            unit="short",
            description="Seconds of synthesis for a second of audio: below 1 the engine is faster than speech.",
            queries=quantiles("real_time_factor"),
        ),
        Panel(
            title="Audio made",
            unit="s",
            description="Seconds of audio a second.",
            queries=((f"sum by (namespace, model) ({rate('audio_seconds_total')})", "{{namespace}}/{{model}}"),),
        ),
    ),
    "Queue": (
        Panel(
            title="Requests that wait",
            unit="short",
            queries=(
                (f"max by (namespace, pod) (cosyvoice_queue_depth{{{CHOSEN}}})", "{{pod}}"),
                (f"min(cosyvoice_queue_limit{{{CHOSEN}}})", "limit"),
            ),
        ),
        Panel(title="How long they wait", unit="s", queries=quantiles("queue_wait_seconds")),
        Panel(
            title="Requests in the engine",
            unit="short",
            queries=((f"sum by (namespace, pod) (cosyvoice_requests_in_flight{{{CHOSEN}}})", "{{pod}}"),),
        ),
    ),
    "Engines": (
        Panel(
            title="Loading, by phase",
            unit="s",
            description="The mean over the loads of the workers that are there.",
            queries=(
                (
                    f"sum by (phase) (cosyvoice_load_duration_seconds_sum{{{CHOSEN}}})"
                    f" / sum by (phase) (cosyvoice_load_duration_seconds_count{{{CHOSEN}}})",
                    "{{phase}}",
                ),
            ),
        ),
        Panel(
            title="Loads within so many seconds",
            unit="short",
            queries=((f"sum by (le) ({LOADS})", "{{le}} s"),),
        ),
        Panel(
            title="Engines replaced, swapped, recycled, in an hour",
            unit="short",
            queries=(
                (
                    f"sum by (reason) (increase(cosyvoice_engine_restarts_total{{{CHOSEN}}}[1h])) or vector(0)",
                    "replaced: {{reason}}",
                ),
                (f"sum by (result) (increase(cosyvoice_engine_swaps_total{{{CHOSEN}}}[1h]))", "swap {{result}}"),
                (
                    f"sum by (reason, result) (increase(cosyvoice_engine_recycles_total{{{CHOSEN}}}[1h])) or vector(0)",
                    "recycled for {{reason}}: {{result}}",
                ),
            ),
        ),
        Panel(
            title="Staged weights",
            unit="bytes",
            queries=((f"max by (namespace, model) (cosyvoice_staged_bytes{{{CHOSEN}}})", "{{namespace}}/{{model}}"),),
        ),
    ),
    "Memory and disks": (
        Panel(
            title="Working set of the limit",
            unit="percentunit",
            queries=(
                (
                    "max by (namespace, pod)"
                    f" (cosyvoice_memory_working_set_bytes{{{CHOSEN}}} / cosyvoice_memory_max_bytes{{{CHOSEN}}})",
                    "{{pod}}",
                ),
            ),
        ),
        Panel(
            title="Memory charged to workers",
            unit="bytes",
            queries=(
                (f"max by (namespace, pod) (cosyvoice_memory_current_bytes{{{CHOSEN}}})", "{{pod}}"),
                (f"min(cosyvoice_memory_max_bytes{{{CHOSEN}}})", "limit"),
            ),
        ),
        Panel(
            title="Highest usage ever, of the limit",
            unit="percentunit",
            description="cAdvisor's container_memory_max_usage_bytes. It counts page cache, which grows up to the limit"
            " by itself and is given back when memory is needed: near 100 % is no alarm.",
            queries=((MAX_USAGE, "{{pod}}"),),
        ),
        Panel(
            title="memory.high",
            unit="bytes",
            cgroup_2=True,
            queries=((f"max by (namespace, pod) (cosyvoice_memory_high_bytes{{{CHOSEN}}})", "{{pod}}"),),
            description="Only where a model asks for worker.memoryHigh.",
        ),
        Panel(
            title="Waiting for memory",
            unit="percentunit",
            cgroup_2=True,
            description="The share of time in which some task of the worker waited for memory (PSI).",
            queries=(
                (
                    f"max by (namespace, pod) ({rate('memory_pressure_seconds_total', SOME)})",
                    "{{pod}}",
                ),
            ),
        ),
        Panel(
            title="Disks busy",
            unit="percentunit",
            description="From the node exporter.",
            queries=(
                (f"max by (instance, device) (rate(node_disk_io_time_seconds_total{RATE}))", "{{instance}} {{device}}"),
            ),
        ),
    ),
    "Operator": (
        Panel(
            title="Passes",
            unit="s",
            queries=tuple(
                (f"histogram_quantile({share}, sum by (le) (rate({PASSES}_bucket{RATE})))", name)
                for share, name in QUANTILES
            ),
        ),
        Panel(
            title="Passes that failed",
            unit="ops",
            queries=(
                (
                    f"sum by (error) (rate(cosyvoice_operator_reconcile_errors_total{RATE}))",
                    "{{error}}",
                ),
            ),
        ),
        Panel(
            title="Requests to the API server",
            unit="reqps",
            queries=(
                (f"sum by (verb, code) (rate(cosyvoice_operator_api_requests_total{RATE}))", "{{verb}} {{code}}"),
            ),
        ),
    ),
}
