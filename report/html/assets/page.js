"use strict";
(() => {
  // Everything a server sent comes in as data and leaves as text nodes, numbers or
  // pixels: there is no markup made of it anywhere in this file.
  const $ = (id) => document.getElementById(id);
  const make = (tag, cls, text) => {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const palette = ["#4a3fd6", "#e07a1f", "#149a76", "#d0356f", "#1f86d0", "#9a6a1a", "#7b3fc4", "#5c8a12", "#c4483c", "#0f8f9e", "#8a5a86", "#6b7280"];
  const darkPalette = ["#9d95ff", "#ffab5c", "#4fd3aa", "#ff7fae", "#6dbcff", "#dcb15c", "#c397ff", "#a8d655", "#ff9085", "#56d3e2", "#d3a6cf", "#a9b1c4"];
  const S = { data: null, floats: null, offsets: null, zoom: null, cards: [], overlay: false, printing: false, charts: new Map() };

  // ---- data -------------------------------------------------------------
  async function inflate(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  // load reads the data of a page, and changes nothing: what is seen is replaced at once, afterwards.
  async function load(page) {
    const text = (id) => page.getElementById(id).textContent, data = JSON.parse(new TextDecoder().decode(await inflate(text("meta"))));
    const bytes = await inflate(text("series")), offsets = [];
    let at = 0;
    for (const n of data.lens || []) { offsets.push(at); at += 4 * n; }
    const xs = data.grids.map((g) => Array.from({ length: g.n }, (_, i) => g.start + (i + 0.5) * g.width));
    return { data, bytes, offsets, arrays: [], xs };
  }
  // array decodes one array: the bytes of its numbers are stored place by place.
  function array(k) {
    if (S.arrays[k]) return S.arrays[k];
    const n = S.data.lens[k], at = S.offsets[k], b = S.bytes, v = new DataView(new ArrayBuffer(4)), out = new Array(n);
    for (let i = 0; i < n; i++) {
      v.setUint32(0, ((b[at + i] << 24) | (b[at + n + i] << 16) | (b[at + 2 * n + i] << 8) | b[at + 3 * n + i]) >>> 0);
      const f = v.getFloat32(0);
      out[i] = Number.isFinite(f) ? f : null;
    }
    return (S.arrays[k] = out);
  }
  const bound = (x) => (x === "+Inf" ? Infinity : x === "-Inf" ? -Infinity : x);

  // ---- numbers ------------------------------------------------------------
  function digits(v) {
    const a = Math.abs(v);
    if (a === 0) return "0";
    if (a >= 1e15 || a < 1e-6) return v.toExponential(2);
    if (a >= 1000) return Math.round(v).toLocaleString("en-US");
    return String(Number(v.toPrecision(3)));
  }
  function scaled(v, steps) {
    const a = Math.abs(v);
    for (const [size, name] of steps) if (a >= size * 0.9995) return digits(v / size) + " " + name;
    const [size, name] = steps[steps.length - 1];
    return digits(v / size) + " " + name;
  }
  const SECONDS = [[3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const FACTORS = { seconds: 1, milliseconds: 1e-3, microseconds: 1e-6, nanoseconds: 1e-9 };
  function show(v, unit, rate) {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    if (v === Infinity) return "∞";
    if (v === -Infinity) return "−∞";
    const per = rate ? "/s" : "";
    if (unit in FACTORS) return v === 0 ? "0 s" + per : rate ? digits(v * FACTORS[unit]) + " s/s" : scaled(v * FACTORS[unit], SECONDS);
    if (unit === "bytes") return v === 0 ? "0 B" + per : scaled(v, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]]) + per;
    if (unit === "ratio" && !rate) return digits(v * 100) + " %";
    if (unit === "percent" && !rate) return digits(v) + " %";
    const u = !unit || unit === "number" || unit === "count" ? "" : unit.startsWith("/") ? unit : " " + unit;
    return digits(v) + u + per;
  }
  const brief = (v, unit, rate) => {
    if (v === null) return "";
    if (!(unit in FACTORS) && unit !== "bytes" && unit !== "ratio" && unit !== "percent") unit = "";
    if (unit === "" && Math.abs(v) >= 10000) return scaled(v, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]).replace(" ", "");
    return show(v, unit, rate).replace("/s", "").replace(" s/s", "");
  };
  const clock = (x) => (Math.abs(x) >= 5400 ? digits(x / 3600) + " h" : Math.abs(x) >= 300 ? digits(x / 60) + " min" : digits(x) + " s");
  // Ticks of time are at whole hours, minutes or seconds, in the unit of their distance.
  const STEPS = [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const ticks = (u, vs, axis, space, step) => vs.map((x) => (step >= 3600 ? digits(x / 3600) + " h" : step >= 60 ? digits(x / 60) + " min" : digits(x) + " s"));

  // ---- colours --------------------------------------------------------------
  const dark = () => !S.printing && (document.documentElement.dataset.theme === "dark" ||
    (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches));
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (i) => (dark() ? darkPalette : palette)[i % palette.length];
  const ramp = () => dark()
    ? [[24, 27, 37], [52, 40, 110], [122, 62, 168], [214, 84, 140], [255, 168, 92], [255, 240, 170]]
    : [[247, 247, 252], [214, 210, 245], [150, 140, 230], [96, 78, 208], [62, 38, 150], [30, 14, 70]];
  function shade(stops, t) {
    const x = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), f = x - i;
    const c = stops[i].map((a, k) => Math.round(a + (stops[i + 1][k] - a) * f));
    return `rgb(${c[0]},${c[1]},${c[2]})`;
  }
  const phaseTint = (name) => name === "warmup" ? "#e0922f" : name === "cooldown" ? "#3f8fd0" : name === "profiling" ? "" : "#8d93a8";

  // ---- zoom and cursor, shared by all pictures --------------------------------
  function extent() {
    let lo = Infinity, hi = -Infinity;
    for (const g of S.data.grids[0].n ? S.data.grids.slice(0, 1) : S.data.grids) if (g.n) { lo = Math.min(lo, g.start); hi = Math.max(hi, g.start + g.n * g.width); }
    return [lo, hi];
  }
  function zoomTo(z) {
    const [lo, hi] = extent();
    if (z) {
      z = [Math.max(lo, z[0]), Math.min(hi, z[1])];
      if (z[1] - z[0] < 1e-3 || (z[0] <= lo && z[1] >= hi)) z = null;
    }
    S.zoom = z;
    for (const c of S.cards) if (c.u) c.u.setScale("x", { min: (z || [lo, hi])[0], max: (z || [lo, hi])[1] });
    $("unzoom").hidden = !z;
    tell(z ? `Zoomed to ${clock(z[0])} to ${clock(z[1])}` : "Whole run");
  }
  const tell = (text) => { $("say").textContent = text; };

  function phasesPlugin() {
    return {
      hooks: {
        drawClear: (u) => {
          const c = u.ctx, { top, height, left, width } = u.bbox, run = S.data.runs[0];
          c.save();
          c.beginPath(); c.rect(left, top, width, height); c.clip();
          for (const p of run.phases || []) {
            const tint = phaseTint(p.name);
            if (!tint) continue;
            const a = u.valToPos(p.start, "x", true), b = u.valToPos(p.end, "x", true);
            c.globalAlpha = dark() ? 0.16 : 0.12; c.fillStyle = tint;
            c.fillRect(a, top, b - a, height);
            c.globalAlpha = 0.7; c.fillRect(a, top, 1, height);
          }
          if (run.to > run.from) {
            c.globalAlpha = dark() ? 0.22 : 0.1; c.fillStyle = "#8d93a8";
            const a = u.valToPos(run.from, "x", true), b = u.valToPos(run.to, "x", true);
            if (!(run.phases || []).some((p) => p.name === "warmup")) c.fillRect(left, top, a - left, height);
            c.fillRect(b, top, left + width - b, height);
          }
          c.restore();
        },
        draw: (u) => {
          const c = u.ctx, { top, height } = u.bbox;
          c.save(); c.strokeStyle = css("--bad"); c.lineWidth = 1; c.setLineDash([3, 3]);
          for (const r of S.data.runs) for (const at of r.resets || []) {
            const x = Math.round(u.valToPos(at, "x", true)) + 0.5;
            if (x >= u.bbox.left && x <= u.bbox.left + u.bbox.width) { c.beginPath(); c.moveTo(x, top); c.lineTo(x, top + height); c.stroke(); }
          }
          c.restore();
        },
      },
    };
  }
  function base(card, height) {
    const ink = css("--mute"), grid = { stroke: css("--grid"), width: 1 };
    return {
      width: Math.max(card.plot.clientWidth, 200), height,
      legend: { show: false },
      cursor: {
        sync: { key: "run", scales: ["x", null], setSeries: false, filters: { pub: (t) => t === "mousemove" || t === "mouseleave" } },
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => () => { zoomTo(null); return null; } },
      },
      scales: { x: { time: false, range: () => S.zoom || extent() } },
      axes: [
        { stroke: ink, grid, ticks: grid, incrs: STEPS, values: ticks, font: "11px system-ui", size: 28, space: 62 },
        { stroke: ink, grid, ticks: { show: false }, font: "11px system-ui", size: 62 },
      ],
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const z = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoomTo(z);
        }],
        setCursor: [(u) => card.values(u.cursor.idx)],
      },
      plugins: [phasesPlugin()],
    };
  }

  // ---- one picture ---------------------------------------------------------------
  class Card {
    constructor(chart, host) {
      this.chart = chart; this.off = new Set(); this.mode = S.data.runs.length > 1 ? "runs" : "map"; this.pick = 0;
      const f = this.el = make("figure", "card"), cap = make("figcaption");
      f.dataset.name = chart.name;
      cap.append(make("span", "ct", chart.title || (chart.group === "family" ? chart.name : chart.name.replaceAll("_", " "))));
      if (chart.word) cap.append(make("code", "cu", chart.word));
      const unit = chart.unit && chart.unit !== "number" ? chart.unit : "";
      cap.append(make("span", "cu", chart.heats ? (unit ? `distribution, ${unit}` : "distribution") : chart.rate ? (unit ? unit + " per second" : "per second") : unit.replace(/^\//, "per ")));
      if (chart.heats) this.heatTools(cap);
      const help = [chart.title ? chart.name : "", chart.help].filter(Boolean).join(": ");
      if (help) { const h = make("span", "ch", help); h.title = help; cap.append(h); }
      this.plot = make("div", chart.heats ? "plot tall" : "plot");
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "group");
      this.plot.setAttribute("aria-roledescription", "chart");
      this.plot.setAttribute("aria-label", this.describe());
      this.plot.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight + - Escape");
      this.plot.addEventListener("keydown", (e) => this.key(e));
      this.legend = make("div", "legend");
      f.append(cap, this.plot, this.legend);
      host.append(f);
      S.cards.push(this);
      seen.observe(f);
    }
    heatTools(cap) {
      const many = this.mode === "runs", b = make("button", "mode", many ? "Heat map" : "Percentiles");
      b.type = "button"; b.setAttribute("aria-pressed", "false");
      b.addEventListener("click", () => {
        this.mode = this.mode !== "map" ? "map" : many ? "runs" : "lines";
        b.setAttribute("aria-pressed", String((this.mode === "map") === many));
        if (s) s.hidden = this.mode === "runs";
        this.draw();
      });
      let s = null;
      cap.append(b);
      if (this.chart.heats.length < 2) return;
      s = make("select"); s.hidden = many; s.setAttribute("aria-label", "Series");
      this.chart.heats.forEach((h, i) => {
        const o = make("option", "", (S.data.runs.length > 1 ? S.data.runs[h.run].name + " · " : "") + h.label);
        o.value = String(i); s.append(o);
      });
      s.addEventListener("change", () => { this.pick = Number(s.value); this.draw(); });
      cap.append(s);
    }
    describe() {
      const c = this.chart, what = c.heats ? `heat map of ${c.heats.length} distributions` : `${(c.lines || []).length} series`;
      let lo = Infinity, hi = -Infinity;
      for (const l of c.lines || []) for (const v of array(l.avg)) if (v !== null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
      return `${c.name}: ${what} over time` + (hi >= lo ? `, from ${show(lo, c.unit, c.rate)} to ${show(hi, c.unit, c.rate)}` : "");
    }
    draw() {
      if (this.u) { this.u.destroy(); this.u = null; }
      if (!this.plot.clientWidth) return;
      if (!this.chart.heats) this.lines();
      else if (this.mode === "map") this.map();
      else if (this.mode === "runs") this.runs();
      else this.percentiles();
      this.values(null);
    }
    drop() { if (this.u) this.u.destroy(); this.u = null; seen.unobserve(this.el); }
    key(e) {
      const u = this.u;
      if (!u) return;
      const xs = u.data[0], [lo, hi] = S.zoom || extent(), idx = u.cursor.idx ?? Math.round(xs.length / 2);
      if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
        const step = (e.shiftKey ? 10 : 1) * (e.key === "ArrowLeft" ? -1 : 1), to = Math.min(Math.max(idx + step, 0), xs.length - 1);
        u.setCursor({ left: u.valToPos(xs[to], "x"), top: u.over.clientHeight / 2 });
        tell(this.spoken(to));
      } else if (e.key === "+" || e.key === "=") { const m = xs[idx], w = (hi - lo) / 4; zoomTo([m - w, m + w]); }
      else if (e.key === "-") { const m = (lo + hi) / 2, w = hi - lo; zoomTo([m - w, m + w]); }
      else if (e.key === "Escape" || e.key === "Home") zoomTo(null);
      else return;
      e.preventDefault();
    }
    // values shows what is at the cursor, or the names alone.
    values(idx) {
      const rows = this.rows || [];
      rows.forEach((r) => { r.value.textContent = idx === null || idx === undefined ? "" : r.at(idx); });
      if (this.when) this.when.textContent = idx === null || idx === undefined || !this.u ? "" : "at " + clock(this.u.data[0][idx]);
    }
    spoken(idx) {
      return `${this.chart.name} at ${clock(this.u.data[0][idx])}: ` + (this.rows || []).map((r) => `${r.name} ${r.at(idx)}`).join("; ");
    }
    // row adds a line to the legend; a series that can be hidden is a button.
    row(name, stroke, at, series, dash) {
      const b = make("button"), i = make("i"), v = make("span", "lv");
      b.type = "button"; i.style.background = dash ? `repeating-linear-gradient(90deg,${stroke} 0 4px,transparent 4px 6px)` : stroke;
      b.append(i, make("span", "ln", name), v); b.title = name;
      b.setAttribute("aria-pressed", String(!this.off.has(name)));
      b.addEventListener("click", () => {
        if (this.off.has(name)) this.off.delete(name); else this.off.add(name);
        b.setAttribute("aria-pressed", String(!this.off.has(name)));
        for (const s of series) this.u.setSeries(s, { show: !this.off.has(name) });
      });
      this.legend.append(b);
      this.rows.push({ name, at, value: v });
    }
    clear() {
      this.legend.replaceChildren();
      this.rows = [];
      this.when = make("span", "lt");
    }
    close() {
      if (this.chart.left) this.legend.append(make("span", "lt", `+ ${this.chart.left} series not drawn`));
      this.legend.append(this.when);
    }
    lines() {
      const c = this.chart, o = base(this, 208), data = [S.xs[c.grid]], series = [{}], bands = [], many = S.data.runs.length > 1;
      this.clear();
      const narrow = c.lines.length <= 4, dashes = [null, [6, 3], [2, 3], [8, 3, 2, 3]], perRun = {};
      c.lines.forEach((l, i) => {
        const nth = (perRun[l.run] = (perRun[l.run] || 0) + 1) - 1;
        const stroke = many ? colour(l.run) : colour(i), name = (many ? S.data.runs[l.run].name + " · " : "") + l.label;
        const show_ = !this.off.has(name), mine = [];
        if (narrow && l.lo >= 0) {
          data.push(array(l.lo), array(l.hi));
          const lo = series.length, edge = { show: show_, stroke: stroke + "00", points: { show: false } };
          series.push(edge, { ...edge });
          bands.push({ series: [lo + 1, lo], fill: stroke + (dark() ? "38" : "2b") });
          mine.push(lo, lo + 1);
        }
        data.push(array(l.avg));
        mine.push(series.length);
        series.push({ show: show_, stroke, width: 1.75, dash: many ? dashes[nth % 4] : undefined, points: { size: 4 } });
        const avg = array(l.avg);
        this.row(name, stroke, (k) => {
          let t = show(avg[k], c.unit, c.rate);
          if (l.lo >= 0 && avg[k] !== null) t += ` [${show(array(l.lo)[k], c.unit)}, ${show(array(l.hi)[k], c.unit)}]`;
          return t;
        }, mine, many && dashes[nth % 4]);
      });
      if (S.overlay && S.clients && c.grid === 0 && c !== S.clients) this.overlay(o, data, series);
      this.close();
      o.series = series; o.bands = bands;
      const whole = c.rate ? 0 : c.unit === "ratio" ? 1 : c.unit === "percent" ? 100 : 0; // shares have an axis from 0 to 100 %
      o.scales.y = { range: (u, lo, hi) => (whole && lo >= 0 && hi <= whole ? [0, whole] : lo === null ? [0, 1] : [lo >= 0 ? 0 : lo * 1.08, hi <= 0 && lo < 0 ? 0 : (hi || 1) * 1.08]) };
      o.axes[1].values = (u, vs) => vs.map((v) => brief(v, c.unit, c.rate));
      this.u = new uPlot(o, data, this.plot);
    }
    // overlay draws the clients' requests in flight behind a server's series.
    overlay(o, data, series) {
      S.clients.lines.forEach((l) => {
        const v = array(l.avg), stroke = css("--mute");
        data.push(v);
        this.row(l.label + " in flight", stroke, (k) => digits(v[k] ?? 0), [series.length]);
        series.push({ scale: "clients", stroke, width: 1, dash: [2, 2], points: { show: false } });
      });
      o.scales.clients = { range: (u, lo, hi) => [0, (hi || 1) * 1.2] };
    }
    // heat is the picked histogram, with quantiles by linear interpolation and the
    // bucket each of them is certainly in.
    heat(h = this.chart.heats[this.pick]) {
      if (h.cells) return h;
      const n = S.data.grids[this.chart.grid].n, known = array(h.known);
      h.uppers = h.bounds.map(bound);
      h.low = bound(h.lowest);
      h.cells = h.counts.map((k) => (k < 0 ? null : array(k)));
      h.total = new Array(n).fill(0); h.max = 0;
      for (const row of h.cells) if (row) row.forEach((v, i) => { h.total[i] += v; h.max = Math.max(h.max, v); });
      h.q = [0.5, 0.9, 0.99].map((q) => h.total.map((t, i) => {
        if (!known[i] || t <= 0) return null;
        let below = 0;
        for (let b = 0; b < h.cells.length; b++) {
          const v = h.cells[b] ? h.cells[b][i] : 0;
          if (v > 0 && below + v >= q * t - 1e-9 * t) return { b, f: (q * t - below) / v };
          below += v;
        }
        return { b: h.cells.length - 1, f: 1 };
      }));
      return h;
    }
    edge(h, b) { return b < 0 ? h.low : h.uppers[b]; }
    value(h, p) {
      if (!p) return null;
      const lo = this.edge(h, p.b - 1), hi = this.edge(h, p.b);
      return !Number.isFinite(hi) ? lo : !Number.isFinite(lo) ? hi : lo + (hi - lo) * p.f;
    }
    quantileRows(h, series) {
      ["p50", "p90", "p99"].forEach((name, k) => this.row(name, this.qColour(k), (i) => {
        const p = h.q[k][i];
        if (!p) return "–";
        const u = this.chart.unit;
        return `${show(this.value(h, p), u)} in [${show(this.edge(h, p.b - 1), u)}, ${show(this.edge(h, p.b), u)}]`;
      }, series(k)));
    }
    qColour(k) { return (dark() ? ["#8ef0c4", "#ffffff", "#ff8f86"] : ["#0b8f61", "#e07a1f", "#d0304a"])[k]; }
    map() {
      const h = this.heat(), o = base(this, 240), rows = h.uppers.length, unit = this.chart.unit, stops = ramp(), grid = S.data.grids[this.chart.grid];
      this.clear();
      const data = [S.xs[this.chart.grid]], series = [{}];
      h.q.forEach((q, k) => {
        data.push(q.map((p) => (p ? p.b + p.f : null)));
        series.push({ stroke: this.qColour(k), width: 1.75, show: !this.off.has(["p50", "p90", "p99"][k]), points: { show: false } });
      });
      this.quantileRows(h, (k) => [k + 1]);
      this.row("observations", css("--mute"), (i) => digits(Math.round(h.total[i])), []);
      this.close();
      o.series = series;
      o.scales.y = { range: () => [0, rows] };
      const every = Math.ceil((rows + 1) / 9);
      o.axes[1].splits = () => Array.from({ length: rows + 1 }, (_, i) => i).filter((i) => (rows - i) % every === 0);
      o.axes[1].values = (u, vs) => vs.map((v) => brief(this.edge(h, v - 1), unit));
      o.axes[1].grid = { show: false };
      o.hooks.drawAxes = [(u) => {
        const c = u.ctx, b = u.bbox, dy = b.height / rows;
        c.save();
        c.beginPath(); c.rect(b.left, b.top, b.width, b.height); c.clip();
        h.cells.forEach((row, r) => {
          if (!row) return;
          const y = b.top + b.height - (r + 1) * dy;
          row.forEach((v, i) => {
            if (!(v > 0)) return;
            const a = u.valToPos(grid.start + i * grid.width, "x", true), z = u.valToPos(grid.start + (i + 1) * grid.width, "x", true);
            if (z < b.left || a > b.left + b.width) return;
            c.fillStyle = shade(stops, 0.1 + 0.9 * Math.sqrt(v / h.max));
            c.fillRect(Math.floor(a), Math.floor(y), Math.ceil(z) - Math.floor(a), Math.ceil(y + dy) - Math.floor(y));
          });
        });
        c.restore();
      }];
      this.u = new uPlot(o, data, this.plot);
    }
    // runs draws p50 and p99 of all series of each run, in the colour of the run, on one axis.
    runs() {
      const o = base(this, 240), unit = this.chart.unit, data = [S.xs[this.chart.grid]], series = [{}];
      this.clear();
      S.data.runs.forEach((run, k) => {
        const of = this.chart.heats.find((h) => h.run === k);
        if (!of) return;
        const h = this.heat(of);
        [["p50", 0, [5, 4]], ["p99", 2, undefined]].forEach(([name, q, dash]) => {
          const v = h.q[q].map((p) => this.value(h, p)), label = run.name + " · " + name;
          data.push(v);
          this.row(label, colour(k), (i) => show(v[i], unit), [series.length], dash);
          series.push({ show: !this.off.has(label), stroke: colour(k), width: 1.75, dash, points: { size: 4 } });
        });
      });
      this.close();
      o.series = series;
      o.scales.y = { range: (u, lo, hi) => (lo === null ? [0, 1] : [Math.min(lo, 0), (hi || 1) * 1.05]) };
      o.axes[1].values = (u, vs) => vs.map((v) => brief(v, unit));
      this.u = new uPlot(o, data, this.plot);
    }
    // percentiles draws them on an axis of values; the bands are the buckets.
    percentiles() {
      const h = this.heat(), o = base(this, 240), unit = this.chart.unit, data = [S.xs[this.chart.grid]], series = [{}];
      this.clear();
      o.bands = [];
      const finite = (x) => (Number.isFinite(x) ? x : null);
      h.q.forEach((q, k) => {
        const stroke = this.qColour(k), on = !this.off.has(["p50", "p90", "p99"][k]), edge = { show: on, stroke: stroke + "00", points: { show: false } }, at = series.length;
        data.push(q.map((p) => (p ? finite(this.edge(h, p.b - 1)) : null)), q.map((p) => (p ? finite(this.edge(h, p.b)) ?? this.value(h, p) : null)), q.map((p) => this.value(h, p)));
        series.push(edge, { ...edge }, { show: on, stroke, width: 1.75, points: { size: 4 } });
        o.bands.push({ series: [at + 1, at], fill: stroke + "2b" });
      });
      this.quantileRows(h, (k) => [3 * k + 1, 3 * k + 2, 3 * k + 3]);
      this.close();
      o.series = series;
      o.scales.y = { range: (u, lo, hi) => (lo === null ? [0, 1] : [Math.min(lo, 0), (hi || 1) * 1.05]) };
      o.axes[1].values = (u, vs) => vs.map((v) => brief(v, unit));
      this.u = new uPlot(o, data, this.plot);
    }
  }
  const seen = new IntersectionObserver((es) => {
    for (const e of es) if (e.isIntersecting) { const c = S.cards.find((c) => c.el === e.target); if (c && !c.u) c.draw(); }
  }, { rootMargin: "300px" });
  const redraw = () => S.cards.forEach((c) => { if (c.u) c.draw(); });

  // ---- the table of families ------------------------------------------------------
  // fit makes what is inside a row as wide as what is seen of the table.
  const fit = (inside) => { inside.style.width = Math.max($("table").parentElement.clientWidth - 26, 240) + "px"; };
  function detail(body) {
    const i = Number(body.dataset.i), t = S.data.tables[i], tr = make("tr", "detail"), cell = make("td"), td = make("div", "inside");
    cell.colSpan = 11;
    cell.append(td); tr.append(cell);
    fit(td);
    body.append(tr);
    const chart = S.data.charts.find((c) => c.family === i);
    if (chart) new Card(chart, td);
    else td.append(make("p", "hint", body.classList.contains("still") ? "Nothing of it moved, so there is nothing to draw." : "It is not drawn; see the notes at the end of the page."));
    if (t && t.rows) {
      const box = make("div", "scroll"), tab = make("table"), head = make("tr");
      box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", "Series of the family");
      const wide = S.data.runs.length > 1 ? 2 : 1;
      t.head.forEach((x, k) => { const th = make("th", k > wide ? "num" : "", x); th.scope = "col"; head.append(th); });
      const th = make("thead"), tb = make("tbody");
      th.append(head);
      for (const row of t.rows.slice(0, 1000)) {
        const r = make("tr");
        row.forEach((x, k) => r.append(make("td", k > wide ? "num" : k === wide ? "wrap mono" : "", x)));
        tb.append(r);
      }
      tab.append(th, tb); box.append(tab); td.append(box);
      const cut = (t.cut || 0) + Math.max(t.rows.length - 1000, 0);
      if (cut) td.append(make("p", "hint", `${cut} more series are in the exports.`));
    }
  }
  function toggle(body, open) {
    const b = body.querySelector(".open"), is = b.getAttribute("aria-expanded") === "true";
    if (open === is) return;
    b.setAttribute("aria-expanded", String(!is));
    if (!is) return detail(body);
    const row = body.querySelector(".detail");
    S.cards = S.cards.filter((c) => { if (row.contains(c.el)) { c.drop(); return false; } return true; });
    row.remove();
  }
  function filter() {
    const text = $("search").value.trim(), moving = $("moving").checked, words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let re = null, n = 0, all = 0;
    if (/[\^$*|\\[(]/.test(text)) { try { re = new RegExp(text, "i"); } catch { re = null; } }
    for (const b of document.querySelectorAll("#table tbody.fam")) {
      all++;
      const row = b.rows[0], hay = row.cells[0].textContent + " " + row.cells[1].textContent;
      const hit = (re ? re.test(row.querySelector(".open").textContent) : words.every((w) => hay.toLowerCase().includes(w))) && !(moving && b.classList.contains("still"));
      b.hidden = !hit;
      if (hit) n++;
    }
    $("found").textContent = `${n} of ${all} families`;
  }
  function sortBy(th) {
    const table = $("table"), k = [...th.parentNode.children].indexOf(th), up = th.getAttribute("aria-sort") !== "ascending";
    for (const x of th.parentNode.children) x.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (b) => { const t = b.rows[0].cells[k].textContent; return th.dataset.sort === "num" ? parseFloat(t.replaceAll(",", "")) || 0 : t; };
    const bodies = [...table.tBodies].sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
    table.append(...bodies);
  }

  // ---- the page ---------------------------------------------------------------------
  const THEMES = [["auto", "◐", "Auto"], ["light", "☀", "Light"], ["dark", "☾", "Dark"]];
  function theme(name) {
    const t = THEMES.find((x) => x[0] === name) || THEMES[0];
    if (t[0] === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = t[0];
    $("theme").replaceChildren(t[1] + " ", make("span", "", t[2]));
    $("theme").setAttribute("aria-label", "Colours: " + t[2]);
    $("theme").dataset.now = t[0];
    try { localStorage.setItem("scrapestat-theme", t[0]); } catch { /* a page from disk may have no storage */ }
    redraw();
    paint();
  }
  function paint() {
    document.querySelectorAll(".swatch").forEach((s) => { s.style.background = colour(Number((s.className.match(/r(\d+)/) || [0, 0])[1])); });
  }
  function phaseLegend() {
    const box = $("legend-phases"), names = new Set(), many = (S.data.runs || []).length > 1;
    box.replaceChildren();
    for (const p of S.data.runs[0].phases || []) {
      if (names.has(p.name) || !phaseTint(p.name) || names.size > 8) continue;
      names.add(p.name);
      const e = make("span"), i = make("i");
      i.style.background = phaseTint(p.name) + "2a"; i.style.borderColor = phaseTint(p.name);
      e.append(i, p.name + (many ? ` of ${S.data.runs[0].name}` : ""));
      box.append(e);
    }
    if (S.clients) {
      const l = make("label"), c = make("input");
      c.type = "checkbox"; c.id = "overlay"; c.checked = S.overlay;
      c.addEventListener("change", () => { S.overlay = c.checked; redraw(); });
      l.append(c, " clients' requests in flight over the server's families");
      box.append(l); box.removeAttribute("aria-hidden");
    }
  }
  function start() {
    S.clients = S.data.charts.find((c) => c.group === "clients");
    phaseLegend();
    const host = { overview: $("g-overview"), clients: $("g-clients"), health: $("g-health") };
    for (const c of S.data.charts) if (host[c.group] && c.group !== "overview") new Card(c, host[c.group]);
    // Latencies come first, then what engines have in common, then the families that quantities rest on.
    const all = S.data.charts.filter((c) => c.first).concat(S.data.charts.filter((c) => c.group === "overview"),
      S.data.charts.filter((c) => c.group === "family" && !c.first).slice(0, 10));
    const most = 8, more = make("details", "more"), grid = make("div", "charts");
    more.append(make("summary", "", `${all.length - most} more pictures`), grid);
    all.forEach((c, i) => new Card(c, i < most ? $("g-overview") : grid));
    if (all.length > most) $("g-overview").after(more);
    const table = $("table");
    table.addEventListener("click", (e) => {
      const b = e.target.closest(".open"), th = e.target.closest("thead th[data-sort]");
      if (b) toggle(b.closest("tbody")); else if (th) sortBy(th);
    });
    $("search").addEventListener("input", filter);
    $("moving").addEventListener("change", filter);
    $("drawall").addEventListener("click", () => {
      let n = 0;
      for (const b of document.querySelectorAll("#table tbody.fam")) if (!b.hidden && n < 24) { toggle(b, true); n++; }
    });
    filter();
    paint();
    // Nobody may scroll: what is open is drawn, one after the other.
    const rest = S.cards.filter((c) => c.plot.clientWidth);
    rest.splice(0, most).forEach((c) => { if (!c.u) c.draw(); });
    const next = () => { const c = rest.shift(); if (c) { if (!c.u && S.cards.includes(c)) c.draw(); setTimeout(next); } };
    next();
    document.documentElement.dataset.ready = "true";
  }
  async function refresh() {
    try {
      const r = await fetch(location.pathname, { cache: "no-store" });
      if (!r.ok) throw new Error(String(r.status));
      const doc = new DOMParser().parseFromString(await r.text(), "text/html");
      const next = await load(doc);
      const open = [...document.querySelectorAll("#table .open[aria-expanded=true]")].map((b) => b.textContent);
      const text = $("search").value, moving = $("moving").checked, focus = document.activeElement && document.activeElement.id, top = scrollY;
      S.cards.forEach((c) => c.drop());
      S.cards = [];
      $("main").replaceChildren(...[...doc.getElementById("main").childNodes].map((n) => document.importNode(n, true)));
      Object.assign(S, next);
      $("search").value = text; $("moving").checked = moving;
      start();
      for (const b of document.querySelectorAll("#table .open")) if (open.includes(b.textContent)) toggle(b.closest("tbody"), true);
      if (focus && $(focus)) $(focus).focus({ preventScroll: true });
      scrollTo(0, top);
      document.documentElement.dataset.refreshed = String(Number(document.documentElement.dataset.refreshed || 0) + 1);
    } catch {
      const c = document.querySelector(".chip.live");
      if (c) { c.className = "chip warn"; c.textContent = "the collector no longer answers: this is the last state"; }
      return;
    }
    setTimeout(refresh, S.data.refresh);
  }
  async function main() {
    Object.assign(S, await load(document));
    let kept = "auto";
    try { kept = localStorage.getItem("scrapestat-theme") || "auto"; } catch { /* none */ }
    theme(kept);
    $("theme").addEventListener("click", () => theme(THEMES[(THEMES.findIndex((t) => t[0] === $("theme").dataset.now) + 1) % 3][0]));
    $("unzoom").addEventListener("click", () => zoomTo(null));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    let wait = 0;
    addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(() => { document.querySelectorAll(".inside").forEach(fit); redraw(); }, 150); });
    addEventListener("keydown", (e) => { if (e.key === "Escape" && S.zoom) zoomTo(null); });
    addEventListener("beforeprint", () => {
      S.printing = true; S.before = document.documentElement.dataset.theme || "";
      document.documentElement.dataset.theme = "light";
      document.querySelectorAll("details.more, details.warning, details.why, #summary details").forEach((d) => { d.open = true; });
      S.cards.forEach((c) => c.draw());
    });
    addEventListener("afterprint", () => {
      S.printing = false;
      if (S.before) document.documentElement.dataset.theme = S.before; else delete document.documentElement.dataset.theme;
      redraw();
    });
    start();
    if (S.data.refresh) setTimeout(refresh, S.data.refresh);
  }
  main();
})();
