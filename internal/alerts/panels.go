package alerts

// row is a row of panels of the dashboard.
type row struct {
	title  string
	panels []panel
}

// panel is a graph of the dashboard.
type panel struct {
	title   string
	unit    string // of Grafana
	queries []query
}

// query is a query of a panel. Its legend has labels in braces.
type query struct{ expr, legend string }

// rows are the rows of the dashboard. They use no recorded rates, so that the dashboard works
// without the rules.
var rows = []row{
	{"Decisions and denials", []panel{
		{"Decisions by verdict", "ops", one(`sum by (verdict) (rate(limitgate_decisions_total{job=~"$job",mode="enforce"}[$__rate_interval]))`, "{{verdict}}")},
		{"Decisions by source", "ops", one(`sum by (source) (rate(limitgate_decisions_total{job=~"$job",mode="enforce"}[$__rate_interval]))`, "{{source}}")},
		{"Share of denials", "percentunit", one(`sum by (job) (rate(limitgate_decisions_total{job=~"$job",mode="enforce",verdict="deny"}[$__rate_interval])) / sum by (job) (rate(limitgate_decisions_total{job=~"$job",mode="enforce"}[$__rate_interval]))`, "{{job}}")},
		{"Denials by limit, the ten with most", "ops", one(`topk(10, sum by (limit) (rate(limitgate_decisions_total{job=~"$job",mode="enforce",verdict="deny"}[$__rate_interval])))`, "{{limit}}")},
		{"Shadow limits would deny", "ops", one(`sum by (limit) (rate(limitgate_decisions_total{job=~"$job",mode="shadow",verdict="would_deny"}[$__rate_interval]))`, "{{limit}}")},
		{"Requests with bypass tokens", "ops", one(`sum by (result) (rate(limitgate_bypass_total{job=~"$job"}[$__rate_interval]))`, "{{result}}")},
	}},
	{"Latency", []panel{
		{"Time of a decision", "s", []query{
			{`histogram_quantile(0.5, sum by (le) (rate(limitgate_decision_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "p50"},
			{`histogram_quantile(0.99, sum by (le) (rate(limitgate_decision_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "p99"},
			{`histogram_quantile(0.999, sum by (le) (rate(limitgate_decision_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "p99.9"},
		}},
		{"p99 by source", "s", one(`histogram_quantile(0.99, sum by (source, le) (rate(limitgate_decision_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{source}}")},
		{"p99 by proxy", "s", one(`histogram_quantile(0.99, sum by (instance, le) (rate(limitgate_decision_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{instance}}")},
		{"p99 of calls to the store by shard", "s", one(`histogram_quantile(0.99, sum by (shard, le) (rate(limitgate_store_batch_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{shard}}")},
	}},
	{"Store and breakers", []panel{
		{"Proxies with an open breaker", "short", one(`sum by (shard) (limitgate_breaker_state{job=~"$job"} > bool 0)`, "{{shard}}")},
		{"Calls left undecided", "ops", one(`sum by (kind) (rate(limitgate_store_errors_total{job=~"$job"}[$__rate_interval]))`, "{{kind}}")},
		{"Share of the backstop", "percentunit", one(`sum by (job) (rate(limitgate_decisions_total{job=~"$job",mode="enforce",source="backstop"}[$__rate_interval])) / sum by (job) (rate(limitgate_decisions_total{job=~"$job",mode="enforce"}[$__rate_interval]))`, "{{job}}")},
		{"Calls by shard", "ops", one(`sum by (shard) (rate(limitgate_store_calls_total{job=~"$job"}[$__rate_interval]))`, "{{shard}}")},
		{"Calls in a batch", "short", one(`sum by (shard) (rate(limitgate_store_calls_total{job=~"$job"}[$__rate_interval])) / sum by (shard) (rate(limitgate_store_batches_total{job=~"$job"}[$__rate_interval]))`, "{{shard}}")},
		{"Calls that wait", "short", one(`sum by (shard) (limitgate_store_queued_checks{job=~"$job"})`, "{{shard}}")},
		{"Lost, shed and capped", "ops", []query{
			{`sum(rate(limitgate_refunds_lost_total{job=~"$job"}[$__rate_interval]))`, "refunds lost"},
			{`sum(rate(limitgate_shed_decisions_total{job=~"$job"}[$__rate_interval]))`, "calls shed"},
			{`sum(rate(limitgate_backstop_capped_total{job=~"$job"}[$__rate_interval]))`, "capped by backstop.total_rate"},
		}},
		{"Outages of masters", "short", []query{
			{`sum(increase(limitgate_shard_outage_seconds_count{job=~"$job"}[$__rate_interval]))`, "ended"},
			{`sum(increase(limitgate_store_reset_total{job=~"$job"}[$__rate_interval]))`, "without data"},
			{`sum(increase(limitgate_topology_reloads_total{job=~"$job"}[$__rate_interval]))`, "topology reloads"},
		}},
	}},
	{"Leases and caches", []panel{
		{"Leases", "ops", []query{
			{`sum(rate(limitgate_decisions_total{job=~"$job",mode="enforce",source="lease"}[$__rate_interval]))`, "decisions"},
			{`sum(rate(limitgate_lease_refreshes_total{job=~"$job"}[$__rate_interval]))`, "refreshes"},
		}},
		{"Decisions without the store", "percentunit", one(`sum by (source) (rate(limitgate_decisions_total{job=~"$job",mode="enforce",source=~"lease|cache"}[$__rate_interval])) / on () group_left () sum(rate(limitgate_decisions_total{job=~"$job",mode="enforce"}[$__rate_interval]))`, "{{source}}")},
		{"Buckets in memory", "short", one(`sum by (instance) (limitgate_memory_buckets{job=~"$job"})`, "{{instance}}")},
		{"Memory store is full", "ops", []query{
			{`sum(rate(limitgate_memory_overflows_total{job=~"$job"}[$__rate_interval]))`, "decisions by overflow buckets"},
			{`sum(rate(limitgate_memory_forgotten_total{job=~"$job"}[$__rate_interval]))`, "calls dropped"},
		}},
	}},
	{"Configuration and cells", []panel{
		{"Stale limits, users and lists", "short", []query{
			{`sum(limitgate_config_stale{job=~"$job"})`, "proxies with stale limits"},
			{`sum(limitgate_users_stale{job=~"$job"})`, "with stale users"},
			{`sum(limitgate_bypass_revoked_stale{job=~"$job"})`, "with a stale list of revoked tokens"},
		}},
		{"Time since the limits were loaded", "s", one(`time() - limitgate_config_loaded_timestamp_seconds{job=~"$job"}`, "{{instance}}")},
		{"Propagation of changes", "s", []query{
			{`histogram_quantile(0.5, sum by (le) (rate(limitgate_config_propagation_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "p50"},
			{`histogram_quantile(0.99, sum by (le) (rate(limitgate_config_propagation_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "p99"},
		}},
		{"Rejected and repaired limits", "short", []query{
			{`sum(increase(limitgate_config_rejected_total{job=~"$job"}[$__rate_interval]))`, "rejected"},
			{`sum(increase(limitgate_config_repairs_total{job=~"$job"}[$__rate_interval]))`, "repairs"},
			{`sum(increase(limitgate_config_out_of_order_total{job=~"$job"}[$__rate_interval]))`, "out of order"},
		}},
		{"Proxies and cells", "short", []query{
			{`max by (job) (limitgate_healthy_instances{job=~"$job"})`, "proxies of {{job}}"},
			{`max by (job) (limitgate_active_cell_count{job=~"$job"})`, "cells of {{job}}"},
		}},
		{"Share of this cell", "percentunit", one(`max by (job) (limitgate_cell_share{job=~"$job"})`, "{{job}}")},
		{"Over-admission of all cells", "short", one(`max by (quantile) (limitgate_over_admission_ratio{job=~"$job"})`, "quantile {{quantile}}")},
		{"Canary", "percentunit", []query{
			{`max by (job) (limitgate_trial_share{job=~"$job"})`, "share of tenants of {{job}}"},
			{`sum by (limits) (limitgate_trial_denied{job=~"$job"}) / on () group_left () sum(limitgate_trial_requests{job=~"$job"})`, "denied by {{limits}} limits"},
		}},
	}},
	{"Process", []panel{
		{"Processors in use", "short", one(`rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval])`, "{{instance}}")},
		{"Resident memory", "bytes", one(`process_resident_memory_bytes{job=~"$job"}`, "{{instance}}")},
		{"Goroutines", "short", one(`go_goroutines{job=~"$job"}`, "{{instance}}")},
		{"Open file descriptors", "short", one(`process_open_fds{job=~"$job"}`, "{{instance}}")},
		{"Client connections", "short", []query{
			{`sum by (instance) (limitgate_connections{job=~"$job"})`, "{{instance}}"},
			{`sum by (instance) (limitgate_http_connections{job=~"$job"})`, "{{instance}}, HTTP"},
		}},
		{"Trouble with clients", "ops", []query{
			{`sum(rate(limitgate_protocol_errors_total{job=~"$job"}[$__rate_interval]))`, "protocol errors"},
			{`sum(rate(limitgate_connections_evicted_total{job=~"$job"}[$__rate_interval]))`, "connections evicted"},
			{`sum(rate(limitgate_tls_handshake_failures_total{job=~"$job"}[$__rate_interval]))`, "TLS handshakes failed"},
			{`sum(rate(limitgate_auth_total{job=~"$job",result!="ok"}[$__rate_interval]))`, "authentications failed"},
		}},
		{"Time to the end of certificates", "s", one(`min by (job, certificate) (limitgate_tls_certificate_not_after_timestamp_seconds{job=~"$job"}) - time()`, "{{job}}, {{certificate}}")},
	}},
}

// one returns the queries of a panel that has only one.
func one(expr, legend string) []query { return []query{{expr, legend}} }
