// The page at /, read-only and self-contained: it asks this server for what it shows, and nobody
// else for anything. Names come from outside, so the script makes text of them, never markup.
#include "http/http_routes.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr char kPage[] = R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>EdgeCase</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 64em; padding: 0 1em;
  color: #222 }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 1.6em }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .25em .8em .25em 0; border-bottom: 1px solid #ddd;
  vertical-align: middle }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.good { color: #17692b } .bad { color: #b00020 }
svg { display: block } polyline { fill: none; stroke: #2160a8; stroke-width: 1.5 }
small { color: #666 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #ddd } td, th { border-color: #333 }
  polyline { stroke: #7ab3ef }
  .good { color: #6fcf87 } .bad { color: #ff8a80 } small { color: #999 } }
</style>
<h1>EdgeCase <small id="version"></small></h1>
<p id="health">…</p>
<h2>Drives</h2><table id="drives"></table>
<h2>Ingest</h2><table id="rates"></table>
<h2>Series <small id="shown"></small></h2><table id="series"></table>
<script>
"use strict";
const chartsMax = 50, refreshMs = 10000;
const at = id => document.getElementById(id);
function element(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}
function row(table, cells) {
  const tr = element("tr");
  for (const cell of cells) tr.append(cell instanceof Node ? cell : element("td", cell));
  table.append(tr);
}
const number = text => element("td", text, "number");
function size(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; bytes >= 1024 && i < units.length - 1; ++i) bytes /= 1024;
  return bytes.toFixed(i ? 1 : 0) + " " + units[i];
}
// Tells views of this page apart: the audit log has one record of each a minute.
const view = Math.random().toString(36).slice(2);
async function get(path) {
  const answer = await fetch(path, {headers: {"X-EdgeCase-Page": view}});
  if (!answer.ok) throw new Error(path + ": " + answer.status);
  return answer;
}
function chart(points) {
  const w = 260, h = 44, ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("width", w); svg.setAttribute("height", h);
  if (points.length < 2) return svg;
  const xs = points.map(p => p[0]), ys = points.map(p => p[1]);
  const x0 = Math.min(...xs), x1 = Math.max(...xs), y0 = Math.min(...ys), y1 = Math.max(...ys);
  const line = document.createElementNS(ns, "polyline");
  line.setAttribute("points", points.map(([x, y]) =>
    ((x - x0) / ((x1 - x0) || 1) * (w - 4) + 2).toFixed(1) + "," +
    (h - 3 - (y - y0) / ((y1 - y0) || 1) * (h - 6)).toFixed(1)).join(" "));
  svg.append(line);
  return svg;
}
const escaped = name => name.replace(/[\\*?\/]/g, "\\$&");
async function readings(s) {
  const span = (new Date(s.last) - new Date(s.first)) / 1000;
  const from = span > 86400 ? new Date(new Date(s.last) - 86400000).toISOString() : s.first;
  const every = Math.max(1, Math.ceil(Math.min(span, 86400) / 120));
  const q = new URLSearchParams({ns: s.namespace,
    select: escaped(s.device) + "/" + escaped(s.sensor), from, every: every + "s", agg: "mean"});
  const text = await (await get("/api/v1/query?" + q)).text();
  return text.split("\n").filter(l => l).map(l => JSON.parse(l))
    .filter(r => typeof r.value === "number").map(r => [+new Date(r.time), r.value]);
}
async function showStatus() {
  const s = await (await get("/api/v1/status")).json();
  at("version").textContent = s.version;
  at("health").textContent = (s.ready ? "Ready" : "Not taking writes: " + s.reason) + " · up " +
    Math.round(s.uptime_seconds) + " s · clock " + (s.clock.trusted ? "trusted" : "not trusted") +
    " · memory " + size(s.memory.resident_bytes);
  at("health").className = s.ready ? "good" : "bad";
  const drives = at("drives"); drives.replaceChildren();
  for (const [name, d] of Object.entries(s.drives)) {
    row(drives, [name, d.path, number(size(d.free_bytes) + " free of " + size(d.total_bytes)),
      number(size(d.live_bytes) + " stored"),
      element("td", d.degraded || "healthy", d.degraded ? "bad" : "good")]);
  }
  const rates = at("rates"); rates.replaceChildren();
  row(rates, ["readings a second", number(s.rates.readings_per_second.toFixed(1))]);
  row(rates, ["readings since start", number(String(s.rates.readings))]);
  row(rates, ["write-ahead log", number(size(s.wal.bytes) + " of " + size(s.wal.limit_bytes))]);
  row(rates, ["series", number(String(s.catalog.series))]);
}
async function showSeries() {
  const all = (await (await get("/api/v1/series?ns=*")).json()).series;
  const table = at("series"); table.replaceChildren();
  at("shown").textContent =
    all.length > chartsMax ? "the first " + chartsMax + " of " + all.length : "";
  for (const s of all.slice(0, chartsMax)) {
    const cell = element("td");
    row(table, [s.namespace, s.device, s.sensor, number(String(s.count)), s.last || "", cell]);
    if (s.count < 2) continue;
    try { cell.append(chart(await readings(s))); } catch (e) { cell.textContent = "—"; }
  }
}
async function refresh() {
  try { await showStatus(); await showSeries(); }
  catch (e) { at("health").textContent = String(e); at("health").className = "bad"; }
  setTimeout(refresh, refreshMs);
}
refresh();
</script>
</html>
)html";

}  // namespace

void get_page(HttpContext& /*context*/, Call& call) {
  call.response.set_header("Content-Security-Policy", kPolicy);
  call.response.set_header("Referrer-Policy", "no-referrer");
  call.answer_text(200, "text/html; charset=utf-8", kPage);
}

}  // namespace edgecase::http
