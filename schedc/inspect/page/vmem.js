// VMEM: addresses up, time to the right, every buffer a rectangle while it is live, its slots filled by transfers.

function scaleOf(panel, lane) {
  const { vmem } = panel.one;
  const near = vmem.limit < vmem.rows * 1.35;
  const top = Math.max(vmem.rows + vmem.compilerRows, near ? vmem.limit : 0) * 1.03;
  return {
    near,
    y: (row) => lane.y + lane.height * (1 - row / top),
    row: (y) => top * (1 - (y - lane.y) / lane.height),
  };
}

function drawVmem(ctx, panel, lane) {
  const { one, axis } = panel;
  const { vmem } = one;
  const scale = scaleOf(panel, lane);
  const clash = new Set(vmem.clash);
  ctx.fillStyle = ink("panel");
  ctx.fillRect(GUTTER, lane.y, axis.width, lane.height);
  for (const buffer of vmem.buffers) {
    const y = scale.y(buffer.row + buffer.rows * buffer.slots);
    const height = Math.max(0.8, scale.y(buffer.row) - y - 0.4);
    const filled = panel.filled.has(buffer);
    const fill = clash.has(buffer.name) ? ink("clash") : ink(filled ? "reserved" : "other");
    drawSpans(ctx, axis, buffer.live, y, height, { colour: () => fill, label: filled ? null : () => buffer.name });
  }
  for (const buffer of panel.filled) drawHeld(ctx, panel, buffer, scale);
  drawPools(ctx, panel, lane, scale);
}

// On its way: light; there and still to be read: full.
function drawHeld(ctx, panel, buffer, scale) {
  const { one, axis } = panel;
  const { held } = buffer;
  const first = Math.max(0, firstAbove(held.began, axis.from) - 4 * buffer.slots - 64);
  const end = firstAbove(held.began, axis.to);
  const written = new Set();
  for (let i = first; i < end; i++) {
    if (held.ended[i] <= axis.from) continue;
    const left = Math.max(axis.x(held.began[i]), GUTTER);
    const right = Math.min(axis.x(held.ended[i]), GUTTER + axis.width);
    const y = scale.y(buffer.row + held.row[i] + held.rows[i]);
    const height = Math.max(0.8, scale.y(buffer.row + held.row[i]) - y - 0.4);
    const fill = familyColour(familyOfTransfer(one, held.transfer[i]));
    ctx.fillStyle = fill;
    ctx.globalAlpha = held.arrives[i] ? 0.45 : 1;
    ctx.fillRect(left, y, Math.max(0.4, right - left - 0.4), height);
    ctx.globalAlpha = 1;
    const slot = Math.floor(held.row[i] / buffer.rows);
    if (!held.arrives[i] && right - left > 60 && height > 11 && !written.has(slot)) {
      written.add(slot);
      const source = one.ops.name[one.hbm.op[held.transfer[i]]].split(" -> ")[0].replace("start ", "");
      writeIn(ctx, source, left, y, right - left, height, fill);
    }
  }
}

function drawPools(ctx, panel, lane, scale) {
  const { one, axis } = panel;
  const { vmem } = one;
  ctx.restore(); // names of the pools stand outside of the lane
  ctx.save();
  ctx.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  ctx.textBaseline = "middle";
  let last = Infinity;
  for (const [name, row, rows] of vmem.pools) {
    ctx.strokeStyle = ink("quiet");
    ctx.globalAlpha = 0.6;
    ctx.beginPath();
    ctx.moveTo(GUTTER, scale.y(row));
    ctx.lineTo(GUTTER + axis.width, scale.y(row));
    ctx.stroke();
    ctx.globalAlpha = 1;
    const y = Math.min(scale.y(row + rows / 2), last - 12);
    if (y > lane.y + 46) {
      ctx.fillStyle = ink("quiet");
      ctx.textAlign = "right";
      ctx.fillText(name, GUTTER - 8, y);
      last = y;
    }
  }
  const mib = (count) => (count * 512 < 1e5 ? bytes(count * 512) : `${((count * 512) / (1 << 20)).toFixed(1)} MiB`);
  ctx.textAlign = "right";
  ctx.fillStyle = ink("quiet");
  ctx.fillText(vmem.slack >= 0 ? `${mib(vmem.slack)} free` : `${mib(-vmem.slack)} too many`, GUTTER - 8, lane.y + 36);
  if (scale.near) {
    ctx.strokeStyle = ink("path");
    ctx.beginPath();
    ctx.moveTo(GUTTER, scale.y(vmem.limit));
    ctx.lineTo(GUTTER + axis.width, scale.y(vmem.limit));
    ctx.stroke();
  }
  if (vmem.compilerRows) {
    const y = scale.y(vmem.rows + vmem.compilerRows);
    ctx.fillStyle = hatch(ctx);
    ctx.fillRect(GUTTER, y, axis.width, Math.max(3, scale.y(vmem.rows) - y));
  }
  drawPeak(ctx, panel, lane, scale, mib);
}

function drawPeak(ctx, panel, lane, scale, mib) {
  const { vmem } = panel.one;
  const { axis } = panel;
  const [time, rows] = vmem.peak;
  if (time < axis.from || time > axis.to) return;
  const x = Math.round(axis.x(time)) + 0.5;
  ctx.strokeStyle = ink("mark");
  ctx.setLineDash([3, 3]);
  ctx.beginPath();
  ctx.moveTo(x, lane.y);
  ctx.lineTo(x, lane.y + lane.height);
  ctx.stroke();
  ctx.setLineDash([]);
  const text = `peak ${mib(rows)}`;
  const room = textWidth(ctx, text) + 8;
  const left = x + room + 4 > GUTTER + axis.width ? x - room - 4 : x + 3;
  ctx.fillStyle = ink("mark");
  ctx.fillRect(left, lane.y + 1, room, 15);
  ctx.fillStyle = ink("ground");
  ctx.textAlign = "left";
  ctx.fillText(text, left + 4, lane.y + 9);
}

function hitVmem(panel, lane, time, y) {
  const row = scaleOf(panel, lane).row(y);
  const { buffers, rows, compilerRows } = panel.one.vmem;
  let found = row >= rows && row < rows + compilerRows ? { panel, kind: "compiler", i: 0, time } : null;
  for (let n = 0; n < buffers.length; n++) {
    const buffer = buffers[n];
    if (row < buffer.row || row >= buffer.row + buffer.rows * buffer.slots) continue;
    const live = spanAt(buffer.live, time);
    if (live < 0) continue;
    found = { panel, kind: "live", i: [n, live], time };
    const { held } = buffer;
    for (let i = firstAbove(held.began, time) - 1; i >= 0 && i > firstAbove(held.began, time) - 200; i--) {
      const inside = row >= buffer.row + held.row[i] && row < buffer.row + held.row[i] + held.rows[i];
      if (inside && time < held.ended[i]) return { panel, kind: "held", i: [n, i], time };
    }
  }
  return found;
}

function boxVmem(panel, lane, kind, [n, i]) {
  const { axis } = panel;
  const buffer = panel.one.vmem.buffers[n];
  const scale = scaleOf(panel, lane);
  const held = kind === "held";
  const column = held ? buffer.held : buffer.live;
  const row = buffer.row + (held ? column.row[i] : 0);
  const rows = held ? column.rows[i] : buffer.rows * buffer.slots;
  const left = Math.max(axis.x(column.began[i]), GUTTER);
  const right = Math.min(axis.x(column.ended[i]), GUTTER + axis.width);
  return [left, scale.y(row + rows), Math.max(2, right - left), scale.y(row) - scale.y(row + rows)];
}
