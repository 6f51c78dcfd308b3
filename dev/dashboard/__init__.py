"""The chart's Grafana dashboard, written from `panels` by `make generate`."""
