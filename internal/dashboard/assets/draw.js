// Elements and charts. All text is set as text, never as HTML: names come from clients.

const svgNamespace = "http://www.w3.org/2000/svg";

// element returns an HTML element with attributes and children.
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// shape returns an SVG element.
function shape(name, attributes, text) {
  const e = document.createElementNS(svgNamespace, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

// number writes a number for people, with at most three digits that count.
export function number(n) {
  if (!Number.isFinite(n)) return "–";
  if (n !== 0 && Math.abs(n) < 0.01) return n.toPrecision(1);
  if (Math.abs(n) >= 1000) return Math.round(n).toLocaleString("en");
  return String(+n.toPrecision(3));
}

// share writes a part of all in percent.
export const share = (part, all) => (all > 0 ? `${number((100 * part) / all)} %` : "–");

// milliseconds writes a time.
export function milliseconds(ms) {
  if (!(ms > 0)) return "–";
  return ms < 1 ? `${number(ms * 1000)} µs` : ms < 1000 ? `${number(ms)} ms` : `${number(ms / 1000)} s`;
}

// fill writes rows into a table: columns are {title, value, name, number, kind}. A value may be an
// element. The focus stays where it was, by the text of its row's first cell.
export function fill(table, columns, rows, none = "none") {
  const focused = table.contains(document.activeElement) ? document.activeElement.textContent : null;
  const head = element("thead", {}, element("tr", {}, ...columns.map((c) => element("th", { scope: "col", ...(c.number ? { class: "number" } : {}) }, c.title))));
  const body = element("tbody");
  for (const row of rows) {
    const cells = columns.map((c) => {
      const classes = [c.number && "number", c.name && "name", c.kind && c.kind(row)].filter(Boolean).join(" ");
      return element("td", classes ? { class: classes } : {}, c.value(row));
    });
    body.append(element("tr", {}, ...cells));
  }
  if (rows.length === 0) body.append(element("tr", {}, element("td", { colspan: columns.length }, none)));
  table.tHead?.remove();
  for (const old of [...table.tBodies]) old.remove();
  table.append(head, body);
  if (focused !== null) [...table.querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
}

// button returns a button in a table.
export function button(text, press) {
  const b = element("button", { type: "button" }, text);
  b.addEventListener("click", press);
  return b;
}

const width = 560, wide = 1120, height = 160, left = 48, bottom = 20, top = 8;

// nice returns a round number that is not less than n.
function nice(n) {
  if (!(n > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= n);
}

// lines draws series over time into a place: series are {title, kind, values}, times are in ms.
export function lines(place, title, times, series) {
  const most = nice(Math.max(...series.flatMap((s) => s.values), 0));
  const x = (i) => left + (times.length < 2 ? 0 : ((times[i] - times[0]) / (times.at(-1) - times[0])) * (width - left - 8));
  const y = (v) => top + (1 - v / most) * (height - top - bottom);
  const latest = series.map((s) => `${s.title} ${number(s.values.at(-1))}`).join(", ");
  const chart = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: now ${latest}` });
  for (const v of [0, most / 2, most]) {
    chart.append(shape("line", { x1: left, x2: width - 8, y1: y(v), y2: y(v), class: "axis" }));
    chart.append(shape("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end", class: "label" }, number(v)));
  }
  if (times.length > 1) {
    const ago = Math.round((times.at(-1) - times[0]) / 1000);
    chart.append(shape("text", { x: left, y: height - 4, class: "label" }, `${ago} s ago`));
    chart.append(shape("text", { x: width - 8, y: height - 4, "text-anchor": "end", class: "label" }, "now"));
  }
  for (const s of series) {
    const points = s.values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
    chart.append(shape("polyline", { points, class: `line ${s.kind}` }));
  }
  place.replaceChildren(chart, key(series));
}

// key explains the lines of a chart.
function key(series) {
  const row = element("p", { class: "key" });
  for (const s of series) {
    const sign = shape("svg", { viewBox: "0 0 32 8", "aria-hidden": "true" });
    sign.append(shape("line", { x1: 0, x2: 32, y1: 4, y2: 4, class: `line ${s.kind}` }));
    row.append(element("span", {}, sign, ` ${s.title}`));
  }
  return row;
}

// strip draws simulated requests: the units left, and a mark for each request.
export function strip(place, result, seconds) {
  const x = (ms) => left + (ms / 1000 / seconds) * (wide - left - 8);
  const floor = height - bottom - 24;
  const y = (units) => top + (1 - units / result.capacity) * (floor - top);
  const chart = shape("svg", {
    viewBox: `0 0 ${wide} ${height}`, role: "img",
    "aria-label": `${result.allowed} requests admitted and ${result.denied} denied in ${seconds} seconds`,
  });
  for (const v of [0, result.capacity]) {
    chart.append(shape("line", { x1: left, x2: wide - 8, y1: y(v), y2: y(v), class: "axis" }));
    chart.append(shape("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end", class: "label" }, number(v)));
  }
  chart.append(shape("polyline", { points: result.requests.map((r) => `${x(r.at_ms).toFixed(1)},${y(r.remaining).toFixed(1)}`).join(" "), class: "line" }));
  for (const r of result.requests) {
    const at = x(r.at_ms).toFixed(1);
    chart.append(r.allowed
      ? shape("line", { x1: at, x2: at, y1: floor + 4, y2: floor + 12, class: "mark" })
      : shape("line", { x1: at, x2: at, y1: floor + 14, y2: floor + 24, class: "mark deny" }));
  }
  chart.append(shape("text", { x: left, y: height - 4, class: "label" }, "0 s"));
  chart.append(shape("text", { x: wide - 8, y: height - 4, "text-anchor": "end", class: "label" }, `${seconds} s`));
  place.replaceChildren(chart);
}
