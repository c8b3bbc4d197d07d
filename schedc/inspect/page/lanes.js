// One schedule as lanes below each other: layers, phases, core, critical path, HBM, links, VMEM.

const LABEL_FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

class Panel {
  constructor(one, axis, letter, moves) {
    this.one = one;
    this.axis = axis;
    this.letter = letter;
    this.moves = moves;
    this.moved = moves && startsOf(one, moves.ops);
    this.onPath = new Set(one.path.transfer.filter((i) => i >= 0));
    this.rows = rowsOf(one.hbm);
    this.routes = rowsOf(one.links, true);
    this.filled = new Set(one.vmem.buffers.filter((buffer) => buffer.held.n > 0));
  }

  // Heights for `room` px in all; what is left over is the map's.
  arrange(top, room) {
    const lanes = [];
    let y = top;
    const add = (kind, label, height, gap = 4) => {
      lanes.push({ kind, label, y, height });
      y += height + gap;
    };
    const two = Boolean(this.letter); // lower lanes where two schedules are below each other
    if (two) add("title", "", 16, 2);
    if (this.one.layers.n) add("layers", "layers", two ? 13 : 15, 2);
    if (this.one.phases.n) add("phases", "phases", two ? 15 : 19, 2);
    if (this.moved) add("moved", "moved", 10, 3);
    add("core", "core", two ? 20 : 32, two ? 3 : 4);
    add("path", "critical path", 14, 2);
    add("idle", "HBM idle", 14, 2);
    add("hbm", "HBM transfers", Math.min(two ? 56 : 96, Math.max(40, this.rows.length * 11)), 2);
    add("bandwidth", "bandwidth", two ? 18 : 30, two ? 2 : 4);
    const routes = this.routes.flatMap((row, route) => (row.n ? [route] : []));
    const few = !two && routes.length <= 4; // more have no room for names of their own
    const [height, gap] = few ? [11, 2] : routes.length <= 4 ? [8, 1] : two ? [3, 1] : [5, 1];
    routes.forEach((route, n) => {
      const label = few ? (route ? `link ${route}` : "same chip") : n === (routes.length - 1) >> 1 ? "links" : "";
      add(`link${route}`, label, height, gap);
    });
    add("vmem", "VMEM", Math.max(two ? 64 : 170, top + room - y - 10), 8);
    this.lanes = lanes;
    this.height = y - top;
    return y;
  }

  lane(kind) {
    return this.lanes.find((lane) => lane.kind === kind);
  }

  draw(ctx) {
    for (const lane of this.lanes) this.drawLane(ctx, lane);
  }

  drawLane(ctx, lane) {
    const { y, height, kind } = lane;
    const { one, axis } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(GUTTER, y - 1, axis.width, height + 2);
    if (kind !== "title") ctx.clip();
    if (kind === "title") drawTitle(ctx, this, lane);
    else if (kind === "layers") {
      drawSpans(ctx, axis, one.layers, y, height, {
        colour: (i) => (theme() === "dark" ? (i % 2 ? "#2b313c" : "#363d4a") : i % 2 ? "#e4e8ee" : "#d3dae4"),
        label: (i) => (axis.x(one.layers.ended[i]) - axis.x(one.layers.began[i]) < 60 ? `${i}` : `layer ${i}`),
      });
    } else if (kind === "phases") {
      drawSpans(ctx, axis, one.phases, y, height, {
        colour: (i) => familyColour(one.phases.families[one.phases.name[i]]),
        label: (i) => one.phases.families[one.phases.name[i]],
      });
      const elsewhere = (i) => this.moves.reordered.has(one.phases.names[one.phases.name[i]]);
      if (this.moves) underline(ctx, axis, one.phases, lane, elsewhere);
    } else if (kind === "moved") drawMoved(ctx, axis, this.moved, lane);
    else if (kind === "core") this.drawCore(ctx, lane);
    else if (kind === "path") {
      const colours = [ink("issue"), ink("path"), ink("exchange")];
      drawSpans(ctx, axis, one.path, y, height, {
        colour: (i) => colours[one.path.kind[i]],
        label: (i) => (one.path.kind[i] ? one.path.words[one.path.what[i]].replace(/^(transfer|exchange) of /, "") : ""),
      });
    } else if (kind === "idle") {
      drawSpans(ctx, axis, one.idle, y, height, {
        colour: (i) => causeColour(one.idle.cause[i]),
        label: (i) => CAUSES[one.idle.cause[i]],
      });
    } else if (kind === "hbm") this.drawTransfers(ctx, lane);
    else if (kind === "bandwidth") this.drawBandwidth(ctx, lane);
    else if (kind.startsWith("link")) this.drawLinks(ctx, lane);
    else if (kind === "vmem") drawVmem(ctx, this, lane);
    ctx.restore();
    if (kind !== "title") drawLabel(ctx, lane);
  }

  drawCore(ctx, { y, height }) {
    const { one, axis } = this;
    const { core, ops } = one;
    const [first, end] = visible(core, axis);
    const work = new Map();
    const pattern = hatch(ctx);
    for (let i = first; i < end; i++) {
      const left = Math.max(axis.x(core.began[i]), GUTTER);
      const right = Math.min(axis.x(core.ended[i]), GUTTER + axis.width);
      const width = right - left;
      const computes = ops.kind[core.op[i]] === "compute";
      const fill = core.blocked[i] ? pattern : computes ? familyColour(familyOfOp(one, core.op[i])) : ink("issue");
      if (width < THIN) {
        addThin(work, fill, left, width);
        continue;
      }
      ctx.fillStyle = fill;
      ctx.fillRect(left, y, width > 3 ? width - 0.6 : width, height);
      if (width > 26) writeIn(ctx, ops.name[core.op[i]], left, y, width, height, fill);
    }
    drawThin(ctx, work, y, height);
  }

  drawTransfers(ctx, { y, height }) {
    const { one, axis, rows } = this;
    ctx.globalAlpha = 0.16;
    drawSpans(ctx, axis, one.idle, y, height, { colour: (i) => causeColour(one.idle.cause[i]) });
    ctx.globalAlpha = 1;
    const each = height / rows.length;
    rows.forEach((row, n) => {
      const [first, end] = visible(row, axis);
      const top = y + n * each;
      const tall = each > 4 ? each - 1 : each;
      const thin = new Map();
      for (let at = first; at < end; at++) {
        const i = row.index[at];
        const fill = familyColour(familyOfTransfer(one, i));
        const issued = Math.max(axis.x(one.hbm.issued[i]), GUTTER);
        const left = Math.max(axis.x(one.hbm.began[i]), GUTTER);
        const right = Math.min(axis.x(one.hbm.ended[i]), GUTTER + axis.width);
        if (right - issued < THIN) {
          addThin(thin, fill, issued, right - issued);
          continue;
        }
        ctx.fillStyle = fill;
        ctx.globalAlpha = 0.35;
        ctx.fillRect(issued, top + tall * 0.3, left - issued, tall * 0.4);
        ctx.globalAlpha = 1;
        ctx.fillRect(left, top, Math.max(0.5, right - left - 0.6), tall);
        if (this.onPath.has(i) && right - left > 4) frame(ctx, left, top, right - left, tall);
        if (right - left > 26) writeIn(ctx, brought(one, i), left, top, right - left, tall, fill);
      }
      drawThin(ctx, thin, top, tall);
    });
  }

  drawBandwidth(ctx, { y, height }) {
    const { one, axis } = this;
    const rate = one.counters.find((counter) => counter.unit === "GB/s");
    if (!rate || !rate.most) return;
    ctx.beginPath();
    ctx.moveTo(GUTTER, y + height);
    for (let px = 0; px <= axis.width; px++) {
      const value = mean(rate, axis.time(GUTTER + px), axis.time(GUTTER + px + 1));
      ctx.lineTo(GUTTER + px, y + height - (value / rate.most) * (height - 1));
    }
    ctx.lineTo(GUTTER + axis.width, y + height);
    ctx.fillStyle = ink("curve");
    ctx.fill();
  }

  drawLinks(ctx, { y, height, kind }) {
    const row = this.routes[Number(kind.slice(4))];
    drawSpans(ctx, this.axis, row, y, height, {
      colour: (at) => familyColour(familyOfOp(this.one, this.one.links.op[row.index[at]])),
      least: 0.4,
    });
  }

  // What is at a point: {kind, i} and the panel.
  hit(x, y) {
    const lane = this.lanes.find((one) => y >= one.y - 1 && y <= one.y + one.height + 1);
    if (!lane || x < GUTTER || lane.kind === "title") return null;
    const { one, axis } = this;
    const time = axis.time(x);
    const found = (kind, i) => (i < 0 ? null : { panel: this, kind, i, time });
    if (lane.kind === "hbm") {
      const row = this.rows[Math.min(this.rows.length - 1, Math.floor(((y - lane.y) / lane.height) * this.rows.length))];
      const at = nearest(row, time, axis.perPixel * 2);
      return at >= 0 ? found("hbm", row.index[at]) : found("idle", spanAt(one.idle, time));
    }
    if (lane.kind.startsWith("link")) {
      const row = this.routes[Number(lane.kind.slice(4))];
      const at = nearest(row, time, axis.perPixel * 2);
      return at >= 0 ? found("links", row.index[at]) : null;
    }
    if (lane.kind === "moved") {
      const at = nearest(this.moved, time, axis.perPixel * 3);
      return at >= 0 ? found(...this.moved.things[at]) : null;
    }
    if (lane.kind === "vmem") return hitVmem(this, lane, time, y);
    if (lane.kind === "bandwidth") return found("bandwidth", 0);
    return found(lane.kind, spanAt(one[lane.kind], time));
  }

  // Where a thing is drawn, as [x, y, width, height]; null if it has no place.
  box(kind, i) {
    const { one, axis } = this;
    const place = (lane, began, ended, part = [0, 1]) => {
      const left = Math.min(Math.max(axis.x(began), GUTTER - 3), GUTTER + axis.width + 3);
      const right = Math.min(Math.max(axis.x(ended), GUTTER - 3), GUTTER + axis.width + 3);
      return [left, lane.y + part[0] * lane.height, Math.max(right - left, 2), part[1] * lane.height];
    };
    if (kind === "hbm") {
      const n = one.hbm.lane[i];
      return place(this.lane("hbm"), one.hbm.issued[i], one.hbm.ended[i], [n / this.rows.length, 1 / this.rows.length]);
    }
    if (kind === "links") return place(this.lane(`link${one.links.lane[i]}`), one.links.began[i], one.links.left[i]);
    if (kind === "held" || kind === "live") return boxVmem(this, this.lane("vmem"), kind, i);
    const column = one[kind];
    return column && this.lane(kind) ? place(this.lane(kind), column.began[i], column.ended[i]) : null;
  }
}

// Transfers by row, each in order of time. Of messages what counts is how long they take the link.
function rowsOf(column, links = false) {
  const rows = [];
  for (let i = 0; i < column.n; i++) (rows[column.lane[i]] ||= []).push(i);
  return Array.from(rows, (index = []) => {
    if (links) index.sort((a, b) => column.began[a] - column.began[b]);
    return {
      n: index.length,
      index,
      began: Int32Array.from(index, (i) => (links ? column.began[i] : column.issued[i])),
      ended: Int32Array.from(index, (i) => (links ? column.left[i] : column.ended[i])),
    };
  });
}

function nearest(row, time, reach) {
  const inside = spanAt(row, time);
  if (inside >= 0) return inside;
  const next = firstAbove(row.began, time);
  if (next < row.n && row.began[next] - time <= reach) return next;
  return next > 0 && time - row.ended[next - 1] <= reach ? next - 1 : -1;
}

// The buffer and slot that a transfer fills, or the array that it leaves VMEM for.
function brought(one, i) {
  const target = one.ops.name[one.hbm.op[i]].split(" -> ")[1];
  const buffer = one.vmem.buffers.find((candidate) => candidate.name === target);
  return buffer && buffer.slots > 1 ? `${target}<${Math.floor(one.hbm.row[i] / buffer.rows)}>` : target;
}

function drawLabel(ctx, { label, y, height }) {
  ctx.font = LABEL_FONT;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ink("quiet");
  ctx.fillText(label, GUTTER - 8, y + Math.min(height, 40) / 2 + 0.5);
}

function drawTitle(ctx, panel, { y, height }) {
  ctx.font = `600 ${LABEL_FONT}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ink("ground");
  ctx.fillRect(0, y, GUTTER + panel.axis.width, height);
  ctx.fillStyle = ink("text");
  const facts = panel.one.facts.slice(0, 3).map(([name, value]) => `${name} ${value}`).join(", ");
  ctx.fillText(`${panel.letter}  ${panel.one.title}: ${facts}`, 12, y + height / 2);
}
