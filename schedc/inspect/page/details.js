// What is said about the thing below the pointer, and which other things belong to it.

function where(one, time) {
  const layer = spanAt(one.layers, time);
  const phase = spanAt(one.phases, time);
  const named = phase < 0 ? "between phases" : one.phases.names[one.phases.name[phase]];
  return layer < 0 ? named : `layer ${layer}, ${named}`;
}

function rateOf(size, time) {
  return time > 0 ? ` (${((size / time) * 1).toFixed(0)} GB/s)` : "";
}

// {title, rows: [name, value], op, related: [[kind, i]]}
function describe({ panel, kind, i, time }) {
  const { one } = panel;
  const { core, ops, hbm, links } = one;
  const span = (column, at) =>
    `${micros(column.began[at])} to ${micros(column.ended[at])}: ${micros(column.ended[at] - column.began[at])}`;
  if (kind === "core") {
    const op = core.op[i];
    const rows = [["when", span(core, i)], ["where", where(one, core.began[i])]];
    if (core.count[i] > 1) rows.push(["how many", `${core.count[i]} one after the other`]);
    if (core.blocked[i]) rows.push(["blocked", micros(core.blocked[i])]);
    const related = [];
    const waited = [];
    for (let t = 0; t < hbm.n; t++) {
      if (hbm.start[t] === i || hbm.use[t] === i) related.push(["hbm", t]);
      if (hbm.wait[t] === i) waited.push(["hbm", t]);
    }
    let messages = 0;
    for (let t = 0; t < links.n; t++) {
      if (links.wait[t] !== i) continue;
      messages += 1;
      if (messages <= 40) related.push(["links", t]);
    }
    if (waited.length) rows.push(["took", waited.map(([, t]) => `${brought(one, t)} (${bytes(ops.bytes[hbm.op[t]])})`).join(", ")]);
    if (messages) rows.push(["took", `${messages} messages from other devices`]);
    return { title: ops.name[op], rows, op, related: [...related, ...waited] };
  }
  if (kind === "hbm") return describeTransfer(panel, i);
  if (kind === "links") {
    const op = links.op[i];
    const rows = [
      ["bytes", bytes(ops.bytes[op])],
      ["to", links.lane[i] ? `chip ${links.lane[i]}` : "the other device of this chip"],
      ["sent", micros(links.issued[i])],
      ["has the link", `${micros(links.began[i])} to ${micros(links.left[i])}`],
      ["there", micros(links.ended[i])],
    ];
    const related = [["core", links.start[i]]];
    if (links.wait[i] >= 0) related.push(["core", links.wait[i]]);
    if (links.use[i] >= 0) related.push(["core", links.use[i]]);
    return { title: ops.name[op], rows, op, related };
  }
  if (kind === "idle") {
    const cause = one.idle.causes[one.idle.cause[i]];
    const rows = [["when", span(one.idle, i)], ["why", cause], ["where", where(one, time)]];
    const next = firstAbove(hbm.issued, one.idle.began[i] - 1);
    const related = [];
    if (next < hbm.n) {
      rows.push(["next start", `${micros(hbm.issued[next])}: ${ops.name[hbm.op[next]].replace("start ", "")}`]);
      related.push(["hbm", next], ["core", hbm.start[next]]);
    }
    return { title: "HBM idle", rows, op: -1, related };
  }
  if (kind === "path") {
    const transfer = one.path.transfer[i];
    const op = one.path.op[i];
    const title = `critical: ${one.path.words[one.path.what[i]]}`;
    const related = transfer >= 0 ? [["hbm", transfer]] : [];
    return { title, rows: [["when", span(one.path, i)], ["where", where(one, time)]], op, related };
  }
  if (kind === "held" || kind === "live") return describeBuffer(panel, kind, i);
  if (kind === "compiler") {
    const rows = one.vmem.compiler.map(([name, size]) => [name, bytes(size)]);
    return { title: "VMEM that the TPU compiler takes beside the pools", rows, op: -1, related: [] };
  }
  if (kind === "bandwidth") {
    const rows = [["at", micros(time)]];
    for (const counter of one.counters) {
      const value = counter.value[Math.max(0, firstAbove(counter.time, time) - 1)];
      rows.push([counter.name, counter.unit === "bytes" ? bytes(value) : `${value.toLocaleString("en-US")} ${counter.unit}`]);
    }
    return { title: "counters", rows, op: -1, related: [] };
  }
  const title = kind === "layers" ? `layer ${i}` : one.phases.names[one.phases.name[i]];
  return { title, rows: [["when", span(one[kind], i)], ["where", where(one, time)]], op: -1, related: [] };
}

function describeTransfer(panel, i) {
  const { one } = panel;
  const { core, ops, hbm } = one;
  const op = hbm.op[i];
  const size = ops.bytes[op];
  const rows = [
    ["bytes", `${bytes(size)}${rateOf(size, hbm.ended[i] - hbm.began[i])}`],
    ["into", brought(one, i)],
    ["started", `${micros(hbm.issued[i])}, ${where(one, hbm.issued[i])}`],
    ["moves", `${micros(hbm.began[i])} to ${micros(hbm.ended[i])}`],
  ];
  const related = [["core", hbm.start[i]]];
  if (hbm.wait[i] >= 0) {
    const wait = hbm.wait[i];
    const early = core.ended[wait] - core.blocked[wait] - hbm.ended[i];
    rows.push(["waited for", `${micros(core.began[wait])}, ${early >= 0 ? `${micros(early)} after it came` : `${micros(-early)} too late`}`]);
    related.push(["core", wait]);
  }
  if (hbm.use[i] >= 0) {
    rows.push(["first used", `${micros(core.began[hbm.use[i]])} by ${ops.name[core.op[hbm.use[i]]]}, ${where(one, core.began[hbm.use[i]])}`]);
    related.push(["core", hbm.use[i]]);
  }
  if (panel.moves?.ops.has(op)) rows.push(["", "started elsewhere in the other schedule"]);
  if (panel.onPath.has(i)) rows.push(["", "on the critical path"]);
  return { title: ops.name[op], rows, op, related, chain: true };
}

function describeBuffer(panel, kind, [n, i]) {
  const { one } = panel;
  const buffer = one.vmem.buffers[n];
  const pool = one.vmem.pools.find(([, row, rows]) => buffer.row >= row && buffer.row < row + rows);
  const rows = [
    ["pool", `${pool[0]}, from row ${buffer.row - pool[1]}`],
    ["size", `${buffer.slots > 1 ? `${buffer.slots} slots of ` : ""}${bytes(buffer.rows * 512)}`],
    ["live", `${micros(buffer.live.began[kind === "live" ? i : spanAt(buffer.live, buffer.held.began[i])] ?? 0)} on`],
  ];
  if (one.vmem.clash.includes(buffer.name)) rows.push(["", "cannot be in VMEM together with the others marked so"]);
  if (kind === "live") {
    const ended = buffer.live.ended[i];
    rows[2] = ["live", `${micros(buffer.live.began[i])} to ${micros(ended)}: ${micros(ended - buffer.live.began[i])}`];
    return { title: buffer.name, rows, op: -1, related: [] };
  }
  const { held } = buffer;
  const transfer = held.transfer[i];
  const slot = Math.floor(held.row[i] / buffer.rows);
  const what = held.arrives[i] ? "on its way" : "there, still to be read";
  rows[2] = [what, `${micros(held.began[i])} to ${micros(held.ended[i])}: ${micros(held.ended[i] - held.began[i])}`];
  const of = describeTransfer(panel, transfer);
  return {
    title: `${buffer.name}${buffer.slots > 1 ? `<${slot}>` : ""}: ${of.title.replace("start ", "")}`,
    rows: [...rows, ...of.rows.slice(2)], op: of.op, related: [["hbm", transfer], ...of.related],
  };
}

function escaped(text) {
  return text.replace(/[&<>]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[letter]);
}

function excerpt(lines, line, around) {
  const first = Math.max(1, line - around);
  const last = Math.min(lines.length, line + around);
  const wide = String(last).length;
  const indents = lines.slice(first - 1, last).filter((text) => text.trim()).map((text) => text.search(/\S/));
  const cut = Math.max(0, Math.min(...indents) - 2);
  const shown = [];
  for (let n = first; n <= last; n++) {
    const number = `<span class="number">${String(n).padStart(wide)}  </span>`;
    const text = lines[n - 1].slice(cut);
    const indent = Math.max(0, text.search(/\S/));
    const wrapped = `<span style="padding-left:${indent}ch">${escaped(text.slice(indent))}</span>`;
    shown.push(n === line ? `<span class="here">${number}${wrapped}</span>` : `${number}${escaped(text)}\n`);
  }
  return `<pre>${shown.join("")}</pre>`;
}

function source(heading, lines, line, missing) {
  if (!lines) return `<div><h2>${heading}</h2>${missing}</div>`;
  return `<div><h2>${heading}, line ${line}</h2>${excerpt(lines, line, 2)}</div>`;
}

const HINTS = `
  <div class="keys"><h2>Getting about</h2>
    <kbd>wheel</kbd> zoom, with <kbd>shift</kbd> scroll; drag to pan, with <kbd>shift</kbd> to zoom to what is chosen;
    double click to zoom to a slice.
    <kbd>w</kbd> <kbd>s</kbd> zoom, <kbd>a</kbd> <kbd>d</kbd> pan, <kbd>0</kbd> whole step. Click keeps a slice here,
    <kbd>←</kbd> <kbd>→</kbd> go to the next, <kbd>Esc</kbd> lets go.</div>
  <div class="keys"><h2>Point at something</h2>to see its operation, bytes and times, its lines in the kernel and in the
    program, and what belongs to it: a transfer's start, its wait, its first use.</div>
  <div class="keys"><h2>What is drawn</h2>A transfer has the colour of the phase that uses it; the thin part before it is
    its way to the HBM. In VMEM a slot is pale while it is filled and full until its last reader. Slices that are too
    narrow are added up in every pixel.</div>`;

function detailsOf(thing) {
  if (!thing) {
    return HINTS;
  }
  const { one } = thing.panel;
  const said = describe(thing);
  const rows = said.rows.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value)}</dd>`).join("");
  const first = `<div><h2>${escaped(said.title)}</h2><dl>${rows}</dl></div>`;
  if (said.op < 0) return `${first}<div></div><div></div>`;
  const line = one.ops.kernel[said.op];
  const missing = one.kernel ? "not a line of its own" : escaped(one.noKernel);
  return first + source("kernel.py", line ? one.kernel : null, line, missing) + source(escaped(one.irName), one.ir, one.ops.ir[said.op], "");
}

function tipOf(thing) {
  const said = describe(thing);
  const lines = said.rows.slice(0, 4).map(([name, value]) => escaped(name ? `${name}: ${value}` : value));
  if (said.op >= 0) {
    const { ops, irName } = thing.panel.one;
    const kernel = ops.kernel[said.op];
    lines.push(`${kernel ? `kernel.py:${kernel}, ` : ""}${escaped(irName)}:${ops.ir[said.op]}`);
  }
  return `<b>${escaped(said.title)}</b>${lines.join("<br>")}`;
}
