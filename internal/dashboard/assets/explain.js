// The form that asks why a request is decided as it is.

import { element, fill, milliseconds } from "./draw.js";

const form = document.getElementById("explain-form");
const result = document.getElementById("explain-result");

// explain says what a denial was, fills in the form with it and answers that: the same request now. The
// address is not known: only its hash is.
export function explain(denial) {
  form.reset();
  const was = denied(denial);
  if (!denial.tenant) {
    result.replaceChildren(element("p", { class: "hint" }, `${was} A key of another limiter's command has no tenant, and no more to explain.`));
    document.getElementById("explain").scrollIntoView();
    return;
  }
  form.elements.tenant.value = denial.tenant;
  form.elements.op.value = denial.op;
  form.elements.cost.value = denial.cost > 0 ? denial.cost : "";
  document.getElementById("explain").scrollIntoView();
  form.elements.ip.focus();
  explanation(new FormData(form), `${was} Below is the same request now. Its address and dimensions are not kept: fill them in, or the answer may be another one.`);
}

// denied describes a denial of the list.
function denied(d) {
  const again = d.retry_after_ms < 0 ? "never" : `in ${milliseconds(d.retry_after_ms)}`;
  const what = d.mode === "shadow" ? "would have denied it" : "denied it";
  const left = d.capacity > 0 ? `: ${d.remaining} of ${d.capacity} left for a cost of ${d.cost}, again ${again}` : "";
  return `At ${new Date(d.at_ms).toLocaleTimeString()} ${d.limit || totalRate} ${what}${left}, decided by ${d.source}.`;
}

// explanation asks for the answer to a form and shows it.
export async function explanation(fields, remark = "") {
  const query = new URLSearchParams([...fields].filter(([, value]) => value !== ""));
  let answer;
  try {
    const reply = await fetch(`/api/explain?${query}`);
    answer = await reply.json();
  } catch {
    answer = { error: "the proxy did not answer" };
  }
  if (answer.error !== undefined) {
    result.replaceChildren(element("p", { class: "verdict deny" }, answer.error));
    return;
  }
  result.replaceChildren(element("p", { class: "hint" }, remark), verdict(answer), limits(answer.limits));
}

// totalRate names what denies a request that its limits admit.
const totalRate = "--backstop-total-rate, which bounds all tenants together where the store does not decide";

function verdict(answer) {
  const again = answer.retry_after_ms < 0 ? "never" : `in ${milliseconds(answer.retry_after_ms)}`;
  const text = answer.allowed
    ? `Would be admitted now${answer.limit_id ? `, ${answer.remaining} of ${answer.limit} left in ${answer.limit_id}` : ": no limit applies"}.`
    : `Would be denied now by ${answer.limit_id ? `${answer.limit_id}: ${answer.remaining} of ${answer.limit} left` : totalRate}, again ${again}.`;
  return element("p", { class: `verdict ${answer.allowed ? "well" : "deny"}` }, `${text} Plan ${answer.plan || "–"}, limits version ${answer.version}.`);
}

function limits(all) {
  const table = element("table", {}, element("caption", {}, "Every limit that was considered"));
  fill(table, [
    { title: "limit", value: (l) => l.id },
    { title: "applies", kind: (l) => (l.applies ? "well" : ""), value: (l) => (l.applies ? "yes" : "no") },
    { title: "mode", value: (l) => l.mode ?? "–" },
    { title: "rate", value: (l) => l.rate },
    { title: "left", number: true, value: (l) => (l.remaining === undefined || l.remaining === null ? "–" : `${l.remaining} of ${l.capacity}`) },
    { title: "why", name: true, value: (l) => l.reason || "–" },
    { title: "while the store is out", name: true, value: (l) => l.on_error || "–" },
    { title: "bucket", name: true, value: (l) => [l.key, l.field].filter(Boolean).join(" ") || "–" },
    { title: "at", value: (l) => l.node || "–" }], all ?? []);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Limits that were considered" }, table);
}
