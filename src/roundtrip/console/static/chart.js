"use strict";
// A token's price and trades. Draws figure[data-candles], and keeps every section[data-live] up to date while it is
// seen: the parts that are marked with data-part are replaced by those of a fresh piece. A piece may come again.
(() => {
  const SIGNS = { launch: "L", graduation: "G", deployer_sold: "D", insider_sold: "I", liquidity_removed: "W", verdict: "V" };
  const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";
  const FONT = "12px system-ui, sans-serif";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // 0.0₈42: eight zeros after the point.
  function price(value) {
    if (value == null) return "–";
    if (value >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
    if (value === 0 || value >= 0.0001) return String(Number(value.toPrecision(4)));
    const [digits, power] = value.toExponential(3).split("e-");
    const zeros = String(Number(power) - 1).replace(/\d/g, (digit) => SUBSCRIPTS[digit]);
    return `0.0${zeros}${digits.replace(".", "").replace(/0+$/, "")}`;
  }

  const whole = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

  function moment(at) {
    return new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");
  }

  function clock(at, step) {
    const text = moment(at);
    return step >= 86400 || text.endsWith("00:00") ? text.slice(5, 10) : text.slice(11);
  }

  const NAMES = { launch: "launched", graduation: "graduated", deployer_sold: "deployer sold", insider_sold: "insider sold", liquidity_removed: "liquidity removed", verdict: "verdict changed" };
  const PRICES = [1, 2, 3, 4];
  let shownIn = "usd";

  // Prices are drawn in dollars, in the money of the pool, or as the market cap of all tokens.
  function scales(figure) {
    const { usd, unit } = figure.dataset, supply = figure.closest("[data-supply]")?.dataset.supply;
    const found = { quote: { factor: 1, prefix: "", suffix: ` ${unit}`, name: unit } };
    if (usd) found.usd = { factor: Number(usd), prefix: "$", suffix: "", name: "$" };
    if (usd && supply) found.cap = { factor: Number(usd) * Number(supply), prefix: "$", suffix: "", name: "Cap" };
    return found;
  }

  const scaleOf = (figure) => scales(figure)[shownIn] || scales(figure).quote;

  // Candles stand side by side, as often as there were trades: no empty weeks. The last row tells what happened then.
  function read(figure) {
    const rows = JSON.parse(figure.dataset.candles), { factor } = scaleOf(figure), span = Number(figure.dataset.span);
    const told = rows.map(() => []);
    for (const [at, kind] of JSON.parse(figure.dataset.marks)) {
      const place = rows.findIndex((row) => row[0] + span > at);
      if (place >= 0 && !told[place].includes(NAMES[kind])) told[place].push(NAMES[kind]);
    }
    figure.times = rows.map((row) => row[0]);
    return [rows.map((_, place) => place), ...PRICES.map((column) => rows.map((row) => row[column] * factor)),
      rows.map((row) => row[5]), told.map((names) => names.join(", ") || null)];
  }

  // No green, also of a verdict that went well once: it may have changed since.
  const markColour = (kind, level) => colour(
    kind === "verdict" ? `--${{ warn: "mind", danger: "bad" }[level] || "none"}`
      : kind === "launch" || kind === "graduation" ? "--ink" : "--bad");

  // A line at the price of the last trade.
  function drawLast(plot) {
    const closes = plot.data[4], context = plot.ctx, { left, width } = plot.bbox;
    const y = Math.round(plot.valToPos(closes[closes.length - 1], "y", true));
    context.save();
    context.strokeStyle = colour("--ink-2");
    context.lineWidth = devicePixelRatio;
    context.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.restore();
  }

  function drawCandles(plot) {
    const [places, opens, highs, lows, closes, volumes] = plot.data, context = plot.ctx;
    const { left, top, width, height } = plot.bbox;
    const step = plot.valToPos(1, "x", true) - plot.valToPos(0, "x", true);
    const wide = Math.max(1, Math.min(step * 0.7, 24 * devicePixelRatio)), line = Math.max(1, devicePixelRatio);
    const up = colour("--accent"), down = colour("--mind"), ground = colour("--surface");
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.lineWidth = line;
    for (const i of places) {
      const x = Math.round(plot.valToPos(i, "x", true)), rises = closes[i] >= opens[i];
      if (x < left - wide || x > left + width + wide) continue;
      const y = (value) => Math.round(plot.valToPos(value, "y", true));
      context.strokeStyle = context.fillStyle = rises ? up : down;
      context.globalAlpha = 0.35;
      const base = top + height, tall = base - plot.valToPos(volumes[i], "volume", true);
      context.fillRect(x - wide / 2, base - tall, wide, tall);
      context.globalAlpha = 1;
      context.fillRect(x - line / 2, y(highs[i]), line, Math.max(line, y(lows[i]) - y(highs[i])));
      const from = Math.min(y(opens[i]), y(closes[i])), size = Math.max(line, Math.abs(y(opens[i]) - y(closes[i])));
      if (rises && size > 3 * line && wide > 3 * line) {
        context.fillStyle = ground;
        context.fillRect(x - wide / 2, from, wide, size);
        context.strokeRect(x - wide / 2, from, wide, size);
      } else context.fillRect(x - wide / 2, from, wide, size);
    }
    context.restore();
  }

  // What checks said then, below the times: a letter for each candle.
  const SAID = { o: "--good", w: "--mind", d: "--bad", u: "--none" };
  function drawVerdicts(plot, figure) {
    const context = plot.ctx, { left, width } = plot.bbox, said = figure.dataset.verdicts || "";
    if (!/[owdu]/.test(said)) return;
    const tall = 6 * devicePixelRatio, at = (place) => plot.valToPos(place, "x", true);
    context.save();
    context.beginPath();
    context.rect(left, 0, width, context.canvas.height);
    context.clip();
    for (const place of plot.data[0]) {
      context.fillStyle = colour(SAID[said[place]] || "--line");
      context.fillRect(at(place - 0.5), context.canvas.height - tall, at(place + 0.5) - at(place - 0.5) + 0.5, tall);
    }
    context.restore();
  }

  // One sign a candle and kind, stacked from the top.
  function drawMarks(plot, figure) {
    const context = plot.ctx, ratio = devicePixelRatio, stacked = new Map(), drawn = new Set();
    const { left, top, width, height } = plot.bbox;
    context.save();
    context.font = `bold ${11 * ratio}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [at, kind, level] of JSON.parse(figure.dataset.marks)) {
      const from = figure.times.findIndex((time) => time + Number(figure.dataset.span) > at), x = Math.round(plot.valToPos(from, "x", true));
      if (from < 0 || drawn.has(`${from} ${kind}`) || x < left || x > left + width) continue;
      drawn.add(`${from} ${kind}`);
      const place = Math.round(x / (16 * ratio)), row = stacked.get(place) || 0;
      stacked.set(place, row + 1);
      const y = top + (10 + 17 * row) * ratio, size = 15 * ratio;
      context.strokeStyle = context.fillStyle = markColour(kind, level);
      context.lineWidth = ratio;
      context.globalAlpha = 0.4;
      context.beginPath();
      context.setLineDash([2 * ratio, 3 * ratio]);
      context.moveTo(x, y + size / 2);
      context.lineTo(x, top + height);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
      context.fillStyle = colour("--surface");
      context.fillRect(x - size / 2, y - size / 2, size, size);
      context.strokeRect(x - size / 2, y - size / 2, size, size);
      context.fillStyle = markColour(kind, level);
      context.fillText(SIGNS[kind], x, y + ratio);
    }
    context.restore();
  }

  function options(figure, width) {
    const span = Number(figure.dataset.span), { unit } = figure.dataset, { prefix, suffix } = scaleOf(figure);
    const time = (place) => figure.times[Math.round(place)];
    const told = (value) => (value == null ? "–" : `${prefix}${price(value)}${suffix}`);
    const hidden = (label, scale, shown) => ({
      label, scale, paths: () => null, points: { show: false }, value: (_, value) => shown(value),
    });
    const axis = (more) => ({
      stroke: () => colour("--ink-2"), font: FONT, grid: { stroke: () => colour("--line"), width: 1 },
      ticks: { stroke: () => colour("--line"), width: 1 }, ...more,
    });
    return {
      width, height: width < 500 ? 260 : 350,
      cursor: { points: { show: false }, drag: { x: true, y: false } },
      scales: {
        // A few candles are not drawn as wide as the page.
        // All of the data gets some room around it; what is asked for is shown as it is.
        x: { time: false, range: (plot, low, high) => {
          const last = plot.data[0].length - 1;
          return low === 0 && (!last || high === last) ? bounds(plot) : [low, high];
        } },
        y: { range: (_, low, high) => {
          const room = (high - low || high) * 0.1;
          return [Math.max(0, low - room * 2.5), high + room * 1.5];
        } },
        events: { range: [0, 1] },
        volume: { range: (_, __, high) => [0, (high || 1) * 5] },
      },
      axes: [
        axis({ space: 70, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500], values: (_, splits) => splits.map((place) => (time(place) ? clock(time(place), span) : "")) }),
        axis({ size: 84, values: (_, splits) => splits.map((value) => prefix + price(value)) }),
      ],
      series: [
        { label: "From (UTC)", value: (_, place) => (place == null ? "–" : moment(time(place))) },
        hidden("Open", "y", told), hidden("High", "y", told), hidden("Low", "y", told), hidden("Close", "y", told),
        hidden("Volume", "volume", (value) => (value == null ? "–" : `${whole.format(value)} ${unit}`)),
        hidden("Events", "events", (value) => value || "–"),
      ],
      // The legend tells the newest candle where no pointer is.
      hooks: { setLegend: [
        (plot) => plot.legend.idx == null && plot.setLegend({ idx: plot.data[0].length - 1 }, false),
      ], draw: [
        (plot) => drawCandles(plot),
        (plot) => drawLast(plot),
        (plot) => drawMarks(plot, figure),
        (plot) => drawVerdicts(plot, figure),
      ] },
    };
  }

  // Where the chart may show: half a candle before the first, some room after the last.
  function bounds(plot) {
    const last = plot.data[0].length - 1;
    return [Math.min(0, last - 20) - 1, last + 1];
  }

  function show(plot, from, to) {
    const [low, high] = bounds(plot), size = Math.min(Math.max(to - from, 10), high - low);
    const min = Math.min(Math.max(from, low), high - size);
    plot.setScale("x", { min, max: min + size });
  }

  // One finger moves the chart, two zoom it; up and down the page scrolls (touch-action).
  function follow(plot) {
    const { over } = plot, fingers = new Map();
    let start = null;
    const place = () => {
      const xs = [...fingers.values()], middle = xs.reduce((sum, x) => sum + x, 0) / xs.length;
      return { middle, apart: xs.length > 1 ? Math.max(20, Math.abs(xs[0] - xs[1])) : 1 };
    };
    const begin = () => {
      start = fingers.size ? { ...place(), min: plot.scales.x.min, max: plot.scales.x.max } : null;
    };
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" || fingers.size > 1) return;
      fingers.set(event.pointerId, event.clientX);
      begin();
    });
    over.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, event.clientX);
      const { left, width } = over.getBoundingClientRect(), { middle, apart } = place();
      const size = (start.max - start.min) * (start.apart / apart);
      const held = start.min + (start.max - start.min) * ((start.middle - left) / width);
      const from = held - size * ((middle - left) / width);
      show(plot, from, from + size);
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      over.addEventListener(name, (event) => fingers.delete(event.pointerId) && begin());
    }
  }

  // Buttons for what prices are drawn in.
  function offerScales(figure, redraw) {
    const group = figure.parentElement.querySelector("[data-scales]"), found = Object.entries(scales(figure));
    if (!group || found.length < 2) return;
    group.replaceChildren(...found.reverse().map(([name, { name: label }]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn-sm";
      button.textContent = label;
      button.setAttribute("aria-pressed", String(scales(figure)[shownIn] ? name === shownIn : name === "quote"));
      button.addEventListener("click", () => {
        shownIn = name;
        for (const one of group.children) one.setAttribute("aria-pressed", String(one === button));
        redraw();
      });
      return button;
    }));
    group.hidden = false;
  }

  // Trades of insiders, or of wallets that the reader follows, alone.
  function offerFilters(section) {
    const group = section.querySelector("[data-filters]");
    if (!group) return;
    group.hidden = false;
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      section.dataset.shows = button.value;
      for (const one of group.children) one.setAttribute("aria-pressed", String(one === button));
    });
  }

  const PHONE_WIDTH = 500, PHONE_CANDLES = 60;

  function draw(figure) {
    const plot = document.createElement("div");
    plot.className = "plot";
    plot.setAttribute("aria-hidden", "true");
    for (const drawn of figure.querySelectorAll("svg")) drawn.remove();
    figure.append(plot);
    const build = () => {
      const width = Math.max(200, plot.clientWidth), data = read(figure);
      const built = new uPlot(options(figure, width), data, plot);
      const first = data[0].length - PHONE_CANDLES;
      if (width < PHONE_WIDTH && first > 0) show(built, first, bounds(built)[1]);
      follow(built);
      return built;
    };
    let chart = build();
    chart.setLegend({ idx: null });
    offerScales(figure, () => again());
    const again = () => {
      if (!figure.isConnected) return;
      chart.destroy();
      chart = build();
    };
    new ResizeObserver(() => {
      if (plot.clientWidth && Math.abs(plot.clientWidth - chart.width) > 1) again();
    }).observe(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    figure.update = () => {
      // Who has zoomed in keeps what he looks at, or what is newest.
      const { min, max } = chart.scales.x, [low, high] = bounds(chart), before = figure.times;
      const isWhole = min <= low && max >= high, first = Math.min(Math.max(0, Math.round(min)), before.length - 1);
      chart.setData(read(figure), isWhole);
      if (isWhole) return;
      const moved = max >= high ? bounds(chart)[1] - high : Math.max(0, figure.times.indexOf(before[first])) - first;
      show(chart, min + moved, max + moved);
    };
  }

  function isUsed(section) {
    const selection = document.getSelection(), rows = section.querySelector("tbody");
    const points = matchMedia("(hover: hover)").matches && rows?.matches(":hover");
    const selects = selection && !selection.isCollapsed && section.contains(selection.anchorNode);
    return points || selects || [...section.querySelectorAll("[data-part]")].some((part) => part.contains(document.activeElement));
  }

  function put(section, fresh) {
    for (const part of section.querySelectorAll("[data-part]")) {
      const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!next) continue;
      if (part.dataset.candles !== undefined) {
        const { candles, marks, verdicts, usd } = next.dataset;
        Object.assign(part.dataset, { candles, marks, verdicts }, usd && { usd });
        part.update?.();
        continue;
      }
      const before = new Set(Array.from(part.querySelectorAll("[data-row]"), (row) => row.dataset.row));
      for (const row of next.querySelectorAll("[data-row]")) if (!before.has(row.dataset.row)) row.classList.add("changed");
      part.replaceWith(document.importNode(next, true));
    }
  }

  function say(section, isLive, isHeld) {
    const lamp = section.querySelector("[data-state]");
    lamp.hidden = false;
    lamp.textContent = isHeld ? "Live; waits while you use it" : isLive ? "Live" : "Not live now: this is older";
    lamp.className = isLive ? "chip t-up" : "chip t-warn";
  }

  async function refresh(section) {
    try {
      const answer = await fetch(section.dataset.live, { headers: { "HX-Request": "true" }, signal: AbortSignal.timeout(10000) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("section[data-live]");
      if (!answer.ok || !fresh) throw new Error("no piece");
      const isHeld = isUsed(section);
      if (!isHeld) put(section, fresh);
      say(section, true, isHeld);
    } catch {
      say(section, false);
    }
  }

  function keep(section) {
    let seen = false, busy = false;
    new IntersectionObserver((entries) => {
      seen = entries[entries.length - 1].isIntersecting;
    }).observe(section);
    say(section, true);
    const timer = setInterval(async () => {
      if (!section.isConnected) return clearInterval(timer);
      if (!seen || busy || document.hidden) return;
      busy = true;
      await refresh(section);
      busy = false;
    }, Number(section.dataset.every) * 1000);
  }

  for (const section of document.querySelectorAll("section[data-live]:not([data-kept])")) {
    const figure = section.querySelector("figure[data-candles]");
    // The trades may be here before the chart's library: the chart brings this script again, after it.
    if (figure && typeof uPlot === "undefined") continue;
    section.dataset.kept = "";
    if (figure) draw(figure);
    offerFilters(section);
    if (section.querySelector("[data-state]")) keep(section);
  }
})();
