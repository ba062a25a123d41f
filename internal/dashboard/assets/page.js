// The live part of the page: samples arrive once a second as server-sent events.

import { button, element, fill, lines, milliseconds, number, share } from "./draw.js";
import { explain, explanation } from "./explain.js";
import { showHistory } from "./history.js";
import { showRollout } from "./rollout.js";
import { startSimulator } from "./simulator.js";
import { startSteps } from "./steps.js";

const byId = (id) => document.getElementById(id);
const pointsKept = 300;
let points = [];
let last = null; // the last sample
let chosen = null; // the id of the limit that is shown
let definitions = []; // the limits in force
let definedBy = ""; // their version

const time = (ms) => new Date(ms).toLocaleTimeString();
const limitName = (id) => id || "(no limit)";

// show writes a sample into the page.
function show(s) {
  last = s;
  if (points.at(-1)?.at_ms !== s.at_ms) points = [...points, s].slice(-pointsKept);
  byId("about").textContent = `${s.version} · limits version ${s.limits.version} from ${s.limits.source}, in use since ${new Date(s.limits.since).toLocaleString()}`;
  byId("tile-decisions").textContent = number(s.decisions);
  byId("tile-denied").textContent = `${number(s.denied)} (${share(s.denied, s.decisions)})`;
  byId("tile-would").textContent = number(s.would_deny);
  byId("tile-p50").textContent = milliseconds(s.latency.p50);
  byId("tile-p99").textContent = milliseconds(s.latency.p99);
  const decided = Object.values(s.sources).reduce((a, b) => a + b, 0);
  byId("tile-backstop").textContent = share(s.sources.backstop ?? 0, decided);
  showCharts();
  showSources(s, decided);
  showLimits(s);
  showDenials(s);
  showStore(s);
  showRollout(s);
  showAlerts(s);
  steps.show(s);
  if (s.limits.version !== definedBy) readLimits(s.limits.version);
}

function showCharts() {
  const times = points.map((p) => p.at_ms);
  lines(byId("chart-decisions"), "Decisions a second", times, [
    { title: "decisions", kind: "", values: points.map((p) => p.decisions) },
    { title: "denied", kind: "deny", values: points.map((p) => p.denied) },
    { title: "shadow limits would deny", kind: "would", values: points.map((p) => p.would_deny) },
  ]);
  lines(byId("chart-latency"), "Milliseconds for a decision", times, [
    { title: "p50", kind: "", values: points.map((p) => p.p50) },
    { title: "p99", kind: "deny", values: points.map((p) => p.p99) },
  ]);
  const rows = points.slice(-60).filter((_, i, all) => (all.length - 1 - i) % 5 === 0).reverse();
  const at = { title: "time", value: (p) => time(p.at_ms) };
  fill(byId("table-decisions"), [at,
    { title: "decisions", number: true, value: (p) => number(p.decisions) },
    { title: "denied", number: true, value: (p) => number(p.denied) },
    { title: "would deny", number: true, value: (p) => number(p.would_deny) }], rows);
  fill(byId("table-latency"), [at,
    { title: "p50", number: true, value: (p) => milliseconds(p.p50) },
    { title: "p99", number: true, value: (p) => milliseconds(p.p99) }], rows);
}

const meanings = {
  store: "the store", lease: "units that this proxy held on lease", cache: "a cached denial",
  backstop: "this proxy's share, without the store", policy: "no limit, a ban, a bypass token, or a limit that fails closed",
};

function showSources(s, decided) {
  const rows = Object.entries(meanings).map(([source, meaning]) => ({ source, meaning, rate: s.sources[source] ?? 0 }));
  byId("chart-sources").replaceChildren(...rows.filter((r) => r.rate > 0).map((r) => {
    const part = element("span", { class: r.source, title: `${r.source}: ${share(r.rate, decided)}` });
    part.style.width = `${(100 * r.rate) / decided}%`;
    return part;
  }));
  fill(byId("table-sources"), [
    { title: "source", value: (r) => r.source },
    { title: "a second", number: true, value: (r) => number(r.rate) },
    { title: "share", number: true, value: (r) => share(r.rate, decided) },
    { title: "decided by", name: true, value: (r) => r.meaning }], rows);
}

function showLimits(s) {
  fill(byId("table-limits"), [
    { title: "limit", name: true, value: (r) => button(limitName(r.id), () => choose(r.id)) },
    { title: "admitted", number: true, value: (r) => number(r.allowed) },
    { title: "denied", number: true, kind: (r) => (r.denied > 0 ? "deny" : ""), value: (r) => number(r.denied) },
    { title: "denied share", number: true, value: (r) => share(r.denied, r.allowed + r.denied) },
    { title: "would deny", number: true, kind: (r) => (r.would_deny > 0 ? "would" : ""), value: (r) => number(r.would_deny) },
    { title: "would-deny share", number: true, value: (r) => share(r.would_deny, r.would_allow + r.would_deny) }],
  s.limit_rates, "no decision yet");
  fill(byId("table-operations"), [
    { title: "operation", name: true, value: (r) => r.op },
    { title: "checks", number: true, value: (r) => number(r.rate) },
    { title: "denied", number: true, kind: (r) => (r.denied > 0 ? "deny" : ""), value: (r) => number(r.denied) },
    { title: "denied share", number: true, value: (r) => share(r.denied, r.rate) },
    { title: "would deny", number: true, kind: (r) => (r.would_deny > 0 ? "would" : ""), value: (r) => number(r.would_deny) }],
  s.operations, "no check names an operation");
  const bucket = [
    { title: "bucket", name: true, value: (r) => r.bucket },
    { title: "limit", value: (r) => r.limit },
    { title: "a second", number: true, value: (r) => number(r.rate) }];
  fill(byId("table-hot"), bucket, s.hot_buckets);
  fill(byId("table-denied"), bucket, s.denied_buckets);
  fill(byId("table-would"), bucket, s.would_deny_buckets);
  if (chosen !== null) showLimit();
}

const denialColumns = [
  { title: "time", value: (d) => time(d.at_ms) },
  { title: "limit", value: (d) => limitName(d.limit) },
  { title: "mode", kind: (d) => (d.mode === "shadow" ? "would" : "deny"), value: (d) => (d.mode === "shadow" ? "would deny" : "denied") },
  { title: "limits", kind: (d) => (d.trial ? "would" : ""), value: (d) => (d.trial ? "on trial" : "in use") },
  { title: "tenant", name: true, value: (d) => button(d.tenant, () => explain(d)) },
  { title: "operation", name: true, value: (d) => d.op },
  { title: "left", number: true, value: (d) => (d.capacity > 0 ? `${d.remaining} of ${d.capacity}` : "–") },
  { title: "cost", number: true, value: (d) => String(d.cost) },
  { title: "again in", number: true, value: (d) => (d.retry_after_ms < 0 ? "never" : milliseconds(d.retry_after_ms)) },
  { title: "source", value: (d) => d.source },
  { title: "address", value: (d) => d.address || "–" },
];

function showDenials(s) {
  fill(byId("table-denials"), denialColumns, s.denials, "no denial yet");
}

function showStore(s) {
  byId("store-about").textContent = s.store === "memory"
    ? "The buckets are in the memory of this proxy: no other one shares them."
    : s.no_master ? "The store is a Redis or a Redis Cluster, and none of its masters is known."
    : `A ${s.store === "cluster" ? "Redis Cluster" : "Redis"}, shared by ${s.instances} ${s.instances === 1 ? "proxy" : "proxies"}. The store granted units for a lease ${number(s.refreshes_per_lease)} times for each decision by one.`;
  fill(byId("table-shards"), [
    { title: "master", value: (r) => r.addr },
    { title: "breaker", kind: (r) => (r.breaker === "closed" ? "well" : "deny"), value: (r) => r.breaker },
    { title: "checks a second", number: true, value: (r) => number(r.checks) },
    { title: "checks a call", number: true, value: (r) => (r.calls > 0 ? number(r.checks / r.calls) : "–") },
    { title: "p99 of a batch", number: true, value: (r) => milliseconds(r.p99) },
    { title: "waiting", number: true, value: (r) => number(r.queued) },
    { title: "errors a second", number: true, kind: (r) => (r.errors > 0 ? "deny" : ""), value: (r) => number(r.errors) },
    { title: "last error", name: true, value: (r) => (r.error ? `${r.error}${r.next_probe_ms > 0 ? `, next try in ${milliseconds(r.next_probe_ms)}` : ""}` : "–") }],
  s.shards, s.no_master || "no master: the buckets are in memory");
}

// showAlerts says what needs an operator. It changes its text only when it differs, so that a
// screen reader says it once.
function showAlerts(s) {
  const wrong = [];
  const open = s.shards.filter((r) => r.breaker !== "closed").map((r) => r.addr);
  if (open.length > 0) wrong.push(`The store does not answer at ${open.join(", ")}: its buckets are decided by this proxy's share. See "A master dies" in the runbook.`);
  if (s.no_master) wrong.push(`${s.no_master.replace(/^n/, "N")}.`);
  if (s.limits.error) wrong.push(`Newer limits are not in use: ${s.limits.error}`);
  if (s.trial.version) wrong.push(`Limits are on trial: version ${s.trial.version}, on ${s.trial.share}.`);
  const text = wrong.join(" ");
  if (byId("alerts").textContent !== text) byId("alerts").textContent = text;
}

async function readLimits(version) {
  definedBy = version;
  try {
    const reply = await fetch("/api/limits");
    definitions = (await reply.json()).limits;
  } catch {
    definedBy = ""; // the next sample tries again
  }
}

// choose shows one limit.
function choose(id) {
  chosen = id;
  byId("limit").hidden = false;
  showLimit();
  byId("limit-title").focus();
}

function showLimit() {
  byId("limit-title").textContent = `Limit ${limitName(chosen)}`;
  const defined = definitions.filter((l) => l.id === chosen);
  showHistory(chosen, last.limits.changes, defined);
  const columns = ["from", "level", "when", "rate", "algorithm", "mode", "warn", "on_error"].map((name) => ({ title: name, name: name === "when", value: (l) => String(l[name] ?? "") || "–" }));
  const definition = element("table", {}, element("caption", {}, "Its definition"));
  fill(definition, columns, defined, chosen ? "not in the limits in force" : "requests that no limit bound");
  const denied = element("table", {}, element("caption", {}, "Its last denials"));
  fill(denied, denialColumns, last.denials.filter((d) => d.limit === chosen), "none in the sample");
  const buckets = element("table", {}, element("caption", {}, "Its buckets that deny most"));
  fill(buckets, [{ title: "bucket", name: true, value: (r) => r.bucket }, { title: "a second", number: true, value: (r) => number(r.rate) }],
    [...last.denied_buckets, ...last.would_deny_buckets].filter((b) => b.limit === chosen));
  const focused = document.activeElement?.textContent;
  const inside = byId("limit-denials").contains(document.activeElement);
  const scroll = (t) => element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t.caption.textContent }, t);
  byId("limit-about").replaceChildren(scroll(definition));
  byId("limit-denials").replaceChildren(scroll(denied), scroll(buckets));
  if (inside) [...byId("limit-denials").querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
}

// state shows whether samples arrive.
function state(word) {
  const e = byId("live");
  if (e.dataset.state === word) return;
  e.dataset.state = word;
  e.textContent = word === "lost" ? "no connection: the figures are old" : word;
}

// connect receives samples while the page is visible: a browser has few connections for a host.
let events = null;
function connect() {
  if (document.hidden || events) return;
  events = new EventSource("/api/events");
  events.addEventListener("points", (e) => { points = JSON.parse(e.data); });
  events.addEventListener("sample", (e) => { state("live"); show(JSON.parse(e.data)); });
  events.addEventListener("error", () => {
    state("lost");
    if (events?.readyState === EventSource.CLOSED) { // the server refused
      events = null;
      setTimeout(connect, 5000);
    }
  });
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return connect();
  events?.close();
  events = null;
  state("paused");
});

const steps = startSteps(byId("steps"));
startSimulator(byId("try-form"));
byId("explain-form").addEventListener("submit", (e) => {
  e.preventDefault();
  explanation(new FormData(e.target));
});
connect();
