// How one limit changed, as this proxy has seen it.

import { element, fill } from "./draw.js";

const table = document.getElementById("table-history");
const about = document.getElementById("history-about");
let shown = null; // the limit that is shown, or asked for, with the number of changes

// showHistory shows the changes of a limit. Changes is how many there are of all limits, and definitions
// are those of the limit: the proxy is asked again when there are others.
export async function showHistory(id, changes, definitions) {
  const wanted = `${changes} ${definitions.length} ${id}`;
  if (shown === wanted) return;
  shown = wanted;
  let history = { changes: [] };
  if (id !== "") {
    try {
      const reply = await fetch(`/api/history?${new URLSearchParams({ limit: id })}`);
      history = await reply.json();
    } catch {
      history = { error: "the proxy did not answer" };
    }
  }
  if (shown !== wanted) return; // another limit was chosen meanwhile
  if (history.error !== undefined) shown = null; // the next sample tries again
  about.textContent = remarks(history, definitions);
  fill(table, [
    { title: "time", value: (c) => new Date(c.at_ms).toLocaleString() },
    { title: "version", value: (c) => `${c.from} → ${c.to}` },
    { title: "for", kind: (c) => (c.trial ? "would" : ""), value: (c) => c.trial || "all tenants" },
    { title: "change", name: true, value: lines }], history.changes ?? [], "no change");
}

function lines(change) {
  const all = [...change.lines];
  if (change.more > 0) all.push(`${change.more} more differences of that change, of this limit or others, are not kept`);
  return element("div", {}, ...all.map((text) => element("div", {}, text)));
}

// remarks says from when on the changes are known, and how to learn who made them.
function remarks(history, definitions) {
  if (history.error !== undefined) return history.error;
  if (history.since === undefined) return "";
  const since = `Changes since this proxy started, ${new Date(history.since).toLocaleString()}.`;
  if (!history.source.startsWith("dynamodb://")) return since;
  const items = [...new Set(definitions.map((l) => item(l.from)))].slice(0, 3);
  return `${since} ${(items.length > 0 ? items : ["ITEM"]).map((i) => `limitgate limits history --bucket BUCKET ${i}`).join(", ")} prints who changed it.`;
}

// item names the item of a table that has a limit.
function item(from) {
  const [, plan] = /^plan (.*)$/.exec(from) ?? [];
  const [, tenant] = /^override of .* by (.*)$/.exec(from) ?? [];
  const key = plan !== undefined ? `PLAN#${plan}` : tenant !== undefined ? `TENANT#${tenant}` : "SHARED";
  return /^[\w.#-]+$/.test(key) ? key : `'${key.replaceAll("'", `'\\''`)}'`;
}
