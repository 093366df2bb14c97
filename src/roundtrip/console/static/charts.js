"use strict";
// Draws each figure.chart from its table, and folds the table into a details element. Without this script the table
// is visible. data-kind: bars, steps (both start at zero) or line; data-unit: shown after each number. The first
// column holds times, each other column is a series; a cell's data-value takes precedence over its text.

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const LINES = ["--link", "--ok", "--warn", "--danger"];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function said(value) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size >= 100000) return short.format(value);
  return Number.isInteger(value) ? whole.format(value) : small.format(value);
}

function read(table) {
  const names = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent.trim());
  const columns = names.map(() => []);
  for (const row of table.tBodies[0].rows) {
    const at = Date.parse(row.querySelector("time")?.dateTime);
    if (Number.isNaN(at)) continue;
    columns[0].push(at / 1000);
    for (let i = 1; i < names.length; i += 1) {
      const text = row.cells[i]?.dataset.value ?? row.cells[i]?.textContent.replaceAll(",", "");
      const value = text?.trim() ? Number(text) : NaN;
      columns[i].push(Number.isNaN(value) ? null : value);
    }
  }
  return { names, columns };
}

function series(kind, name, number, unit) {
  const line = () => colour(LINES[number % LINES.length]);
  const paths = kind === "bars" ? uPlot.paths.bars({ size: [0.8, 48], align: 1 })
    : kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  return {
    label: name, paths, stroke: line, width: kind === "bars" ? 0 : 2, fill: kind === "bars" ? line : undefined,
    points: { show: kind !== "bars", size: 6, fill: line },
    value: (_, value) => said(value) + (unit && value != null ? " " + unit : ""),
  };
}

function axis(more) {
  const line = { stroke: () => colour("--line"), width: 1 };
  return { stroke: () => colour("--quiet"), grid: line, ticks: line, font: "12px system-ui, sans-serif", ...more };
}

function range(kind) {
  return (_, low, high) => {
    if (low == null) return [0, 1];
    const based = kind !== "line", from = based ? Math.min(0, low) : low, to = based ? Math.max(0, high) : high;
    const room = (to - from || Math.abs(to) || 1) * 0.1;
    return [based && from === 0 ? 0 : from - room, based && to === 0 ? 0 : to + room];
  };
}

function drawn(figure) {
  const table = figure.querySelector("table");
  const { names, columns } = read(table);
  if (columns[0].length === 0) return;
  const { kind, unit } = figure.dataset;
  const plot = document.createElement("div");
  plot.className = names.length === 2 ? "plot one" : "plot";
  plot.setAttribute("aria-hidden", "true");
  const body = table.closest(".wide") || table;
  body.before(plot);
  const options = () => asked(kind, unit, names, columns[0], Math.max(200, plot.clientWidth));
  let chart = new uPlot(options(), columns, plot);
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Show as a table";
  body.before(details);
  details.append(summary, body);
  new ResizeObserver(() => {
    const { width, height } = options();
    if (width !== chart.width) chart.setSize({ width, height });
  }).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.destroy();
    chart = new uPlot(options(), columns, plot);
  });
}

function asked(kind, unit, names, times, width) {
  const first = times[0], last = times[times.length - 1], step = times.length > 1 ? times[1] - first : 3600;
  const bars = kind === "bars", pad = bars ? step : (last - first) * 0.02 || 3600;
  return {
    width, height: 220, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    cursor: { drag: { x: false, y: false } },
    scales: { x: { range: () => [bars ? first : first - pad, last + pad] }, y: { range: range(kind) } },
    axes: [
      axis({ space: 70, incrs: SPANS, values: (_, splits, __, ___, by) => once(splits.map((at) => clock(at, by))) }),
      axis({ size: 62, values: (_, splits) => once(splits.map(said)), incrs: bars ? WHOLE : undefined }),
    ],
    series: [
      { label: names[0], value: (_, at) => (at == null ? "–" : moment(at)) },
      ...names.slice(1).map((name, number) => series(kind, name, number, unit)),
    ],
  };
}

// Seconds between two ticks: the clock shows no part of a second.
const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600,
  604800, 1209600, 2592000, 7776000, 31536000];
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 1e6, 1e7, 1e8, 1e9];

// A label that repeats the one before it says nothing.
function once(texts) {
  return texts.map((text, number) => (text === texts[number - 1] ? "" : text));
}

function moment(at) {
  return new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function clock(at, by) {
  const text = moment(at);
  if (by >= 86400) return text.slice(5, 10);
  if (by < 60) return new Date(at * 1000).toISOString().slice(11, 19);
  return text.endsWith("00:00") ? text.slice(5, 10) : text.slice(11);
}

for (const figure of document.querySelectorAll("figure.chart")) drawn(figure);
