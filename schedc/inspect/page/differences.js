// Of a page of two schedules: what differs between them, as a list, and marked where it is drawn.

// What is marked of schedule `n`: operations that start a transfer where the other does not, phases that stand elsewhere.
function moves(differs, n) {
  if (!differs) return null;
  return { ops: new Set(differs.moved.flatMap((entry) => entry[3 + n])), reordered: new Set(differs.reordered) };
}

// The starts of these operations on the core, in order of time, each with the transfer that it started.
function startsOf(one, ops) {
  const found = [];
  for (const kind of ["hbm", "links"]) {
    const column = one[kind];
    for (let i = 0; i < column.n; i++) if (ops.has(column.op[i])) found.push([column.start[i], kind, i]);
  }
  found.sort((a, b) => a[0] - b[0]);
  const began = [];
  const ended = [];
  const things = [];
  for (const [at, [start, kind, i]] of found.entries()) {
    if (at && found[at - 1][0] === start) continue; // messages that are drawn as one
    began.push(one.core.began[start]);
    ended.push(one.core.ended[start]);
    things.push([kind, i]);
  }
  return { n: began.length, began: Int32Array.from(began), ended: Int32Array.from(ended), things };
}

// At least two pixels wide, however short the start.
function drawMoved(ctx, axis, moved, { y, height }) {
  const [first, end] = visible(moved, axis);
  ctx.fillStyle = ink("moved");
  for (let at = first; at < end; at++) {
    const left = axis.x(moved.began[at]);
    ctx.fillRect(left, y, Math.max(2, axis.x(moved.ended[at]) - left), height);
  }
}

function underline(ctx, axis, column, { y, height }, marked) {
  const [first, end] = visible(column, axis);
  ctx.fillStyle = ink("moved");
  for (let i = first; i < end; i++) {
    if (!marked(i)) continue;
    const left = axis.x(column.began[i]);
    ctx.fillRect(left, y + height - 3, Math.max(1, axis.x(column.ended[i]) - left), 3);
  }
}

function tableOf(title, heads, rows, numbers = false) {
  if (!rows.length) return "";
  const head = heads.map((text) => `<th>${text}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("");
  return `<h2>${title}</h2><table${numbers ? ' class="numbers"' : ""}><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
}

function differencesOf(differs) {
  const words = (rows) => rows.map((row) => row.map(escaped));
  const settings = tableOf("Settings", ["", "A", "B"], words(differs.settings));
  const figures = tableOf("Figures", ["", "A", "B", "change", ""], words(differs.figures), true);
  const phases = tableOf("Phases, µs a step", ["", "A", "B", "change"], words(differs.phases), true);
  const to = (entry, n, text) =>
    differs.moved[entry][3 + n].length
      ? `<button data-moved="${entry}" data-panel="${n}" title="go to the next one in ${"AB"[n]}">${escaped(text)}</button>`
      : escaped(text);
  const moved = tableOf(
    "Transfers issued elsewhere",
    ["", "in A", "in B"],
    differs.moved.map(([name, one, other], entry) => [escaped(name), to(entry, 0, one), to(entry, 1, other)]),
  );
  const order = differs.reordered.length ? `<h2>Phases that stand elsewhere</h2><p>${escaped(differs.reordered.join(", "))}</p>` : "";
  const tiles = tableOf("Bytes of a transfer", ["", "A", "B"], words(differs.tiles));
  const buffers = tableOf("Buffers", ["", "A", "B"], words(differs.buffers));
  const addresses = differs.addresses ? `<p>${differs.addresses} buffers of the same size lie elsewhere</p>` : "";
  const same = differs.same ? "<h2>The same program</h2>" : "";
  return `<div class="differences">${same}${figures}${settings}</div><div class="differences">${moved}</div>
    <div class="differences">${order}${phases}${tiles}${buffers}${addresses}</div>`;
}
