// Limits on trial, and the cell of this proxy.

import { fill, number, share } from "./draw.js";

const byId = (id) => document.getElementById(id);
let divided = ""; // the version and the cells of the parts that are shown, or asked for

// showRollout shows a sample.
export function showRollout(s) {
  const { limits, trial, cell } = s;
  const sentences = [
    trial.version ? `Version ${trial.version} is on trial on ${trial.share}. The proxy takes it back when it denies ${number(100 * trial.threshold)} percentage points more of their requests in a minute than the limits in use would.` : "No limits are on trial.",
    cell.name ? `This proxy is in the cell ${cell.name}. ${cell.active} active ${cell.active === 1 ? "cell shares" : "cells share"} the limits, and this one has ${number(100 * cell.share)} % of each.` : "This proxy is in no cell: it enforces the whole of each limit.",
  ];
  if (byId("rollout-about").textContent !== sentences.join(" ")) byId("rollout-about").textContent = sentences.join(" ");
  const rows = [{ name: "in use", version: limits.version, tenants: trial.version ? "the other tenants" : "all tenants", since: limits.since }];
  if (trial.version) rows.push({ name: "on trial", version: trial.version, tenants: trial.share, since: trial.since });
  if (limits.error) rows.push({ name: "refused", why: limits.error });
  fill(byId("table-versions"), [
    { title: "limits", kind: (r) => (r.name === "refused" ? "deny" : r.name === "on trial" ? "would" : ""), value: (r) => r.name },
    { title: "version", value: (r) => r.version ?? "–" },
    { title: "decide for", value: (r) => r.tenants ?? "no tenant" },
    { title: "since", value: (r) => (r.since ? new Date(r.since).toLocaleString() : "–") },
    ...(limits.error ? [{ title: "why", name: true, value: (r) => r.why ?? "–" }] : [])], rows);
  byId("rollout-trial").hidden = !trial.version;
  if (trial.version) showTrial(trial);
  byId("rollout-cell").hidden = !cell.name;
  if (cell.name) readCell(`${limits.version} ${cell.active} ${cell.share}`);
}

function showTrial(trial) {
  fill(byId("table-trial"), [
    { title: "limits", value: (r) => r.name },
    { title: "requests", number: true, value: () => number(trial.requests) },
    { title: "denied", number: true, kind: (r) => (r.denied > 0 ? "deny" : ""), value: (r) => number(r.denied) },
    { title: "denied share", number: true, value: (r) => share(r.denied, trial.requests) }],
  [{ name: "on trial", denied: trial.denied }, { name: "in use", denied: trial.denied_before }]);
}

// readCell asks for this cell's parts of the limits, if they are not those that are shown.
async function readCell(wanted) {
  if (divided === wanted) return;
  divided = wanted;
  let parts;
  try {
    const reply = await fetch("/api/cells");
    if (!reply.ok) throw new Error(reply.statusText);
    parts = await reply.json();
  } catch {
    divided = ""; // the next sample tries again
    return;
  }
  fill(byId("table-cell"), [
    { title: "limit", value: (l) => l.limit },
    { title: "plan", value: (l) => l.plan || "shared" },
    { title: "rate of all cells", value: (l) => l.whole },
    { title: "of it here", number: true, value: (l) => number(l.count) },
    { title: "bucket of all cells", number: true, value: (l) => number(l.whole_capacity) },
    { title: "bucket here", number: true, value: (l) => number(l.capacity) }], parts.limits);
  byId("cell-more").textContent = parts.more > 0 ? `${parts.more} more limits are not in the table.` : "";
}
