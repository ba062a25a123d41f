// The simulator: the server decides the requests, by the limiter that decides real ones.

import { fill, milliseconds, strip } from "./draw.js";

// startSimulator runs the form now, and whenever it changes.
export function startSimulator(form) {
  form.addEventListener("submit", (e) => { e.preventDefault(); run(form); });
  form.addEventListener("change", () => run(form));
  run(form);
}

async function run(form) {
  const text = document.getElementById("try-result");
  const fields = new FormData(form);
  let result;
  try {
    const reply = await fetch(`/api/simulate?${new URLSearchParams(fields)}`);
    result = await reply.json();
  } catch {
    result = { error: "the proxy did not answer" };
  }
  if (result.error !== undefined) {
    text.textContent = result.error;
    return;
  }
  const all = result.allowed + result.denied;
  text.textContent = `${all} requests: ${result.allowed} admitted, ${result.denied} denied (${all ? Math.round((100 * result.denied) / all) : 0} %).`;
  strip(document.getElementById("chart-try"), result, Number(fields.get("seconds")));
  fill(document.getElementById("table-try"), [
    { title: "at", number: true, value: (r) => (r.at_ms > 0 ? milliseconds(r.at_ms) : "0") },
    { title: "verdict", kind: (r) => (r.allowed ? "well" : "deny"), value: (r) => (r.allowed ? "admitted" : "denied") },
    { title: "left", number: true, value: (r) => String(r.remaining) },
    { title: "again in", number: true, value: (r) => (r.allowed ? "–" : milliseconds(r.retry_after_ms)) }],
  result.requests.slice(0, 50));
}
