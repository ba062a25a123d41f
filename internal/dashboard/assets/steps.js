// How a decision is made, step by step, with the figures of this proxy.

import { element, milliseconds, number } from "./draw.js";

const steps = [
  ["Parse", "The words of RL.CHECK become a tenant, an operation, an address and a cost.",
    (s) => `${number(s.decisions)} checks a second`],
  ["Find the limits", "The tenant's plan and the shared limits say which ones apply, and each names one bucket.",
    (s) => `version ${s.limits.version}`],
  ["Deny from the cache", "A bucket that has just denied, and cannot have enough yet, denies again without a call.",
    (s) => `${number(s.sources.cache ?? 0)} a second`],
  ["Take from a lease", "Units that this proxy took in advance need no call either.",
    (s) => `${number(s.sources.lease ?? 0)} a second, ${number(s.refreshes_per_lease)} refreshes for each`],
  ["Ask the store", "One script for the buckets of a tenant takes from all of them or from none. Checks that arrive together share a call.",
    (s) => {
      const calls = s.shards.reduce((n, r) => n + r.calls, 0), checks = s.shards.reduce((n, r) => n + r.checks, 0);
      return s.store === "memory" ? `${number(s.sources.store ?? 0)} a second, in memory` : `${number(checks)} checks in ${number(calls)} calls a second`;
    }],
  ["Or decide without it", "While the store does not answer, each proxy decides by its share of the limit.",
    (s) => `${number(s.sources.backstop ?? 0)} a second`],
  ["Answer", "The strictest limit binds: all must admit. The answer has what is left, and when to try again.",
    (s) => `half within ${milliseconds(s.latency.p50)}, 99 % within ${milliseconds(s.latency.p99)}; ${number(s.denied)} denied a second`],
];

// startSteps fills in a place, and returns a function that shows a sample.
export function startSteps(place) {
  const figures = steps.map(() => element("span", { class: "figure" }));
  const items = steps.map(([title, text], i) => element("li", {}, element("strong", {}, `${i + 1}. ${title}`), `${text} `, figures[i]));
  place.append(element("ol", {}, ...items));
  let current = 0;
  const go = (to) => {
    items[current].removeAttribute("aria-current");
    current = Math.max(0, Math.min(items.length - 1, to));
    items[current].setAttribute("aria-current", "step");
    items[current].scrollIntoView({ block: "nearest" });
  };
  place.addEventListener("keydown", (e) => {
    const to = { ArrowDown: current + 1, ArrowRight: current + 1, ArrowUp: current - 1, ArrowLeft: current - 1, Home: 0, End: items.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    go(to);
  });
  items.forEach((item, i) => item.addEventListener("click", () => go(i)));
  items[0].setAttribute("aria-current", "step");
  return { show: (s) => steps.forEach(([, , figure], i) => { figures[i].textContent = figure(s); }) };
}
