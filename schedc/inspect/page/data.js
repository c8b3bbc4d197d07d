// The data of the page: packed JSON whose columns are differences, made into typed arrays. Times are ns.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function sums(differences) {
  const values = new Int32Array(differences.length);
  let value = 0;
  for (let i = 0; i < values.length; i++) values[i] = value += differences[i];
  return values;
}

function added(column, base) {
  const values = Int32Array.from(column);
  for (let i = 0; i < values.length; i++) values[i] += base[i];
  return values;
}

// Numbers that are given as how much later than `base`, -1 for none.
function after(column, base) {
  return Int32Array.from(column, (value, i) => (value < 0 ? -1 : base[i] + value));
}

function spans(raw) {
  const began = sums(raw.began);
  return { n: began.length, began, ended: added(raw.length, began) };
}

function transfers(raw) {
  const issued = sums(raw.issued);
  const began = added(raw.began, issued);
  const start = sums(raw.start);
  return {
    n: issued.length, issued, began, ended: added(raw.ended, began), start,
    op: raw.op, lane: raw.lane, row: raw.row,
    wait: after(raw.wait, start), use: after(raw.use, start), last: after(raw.last, start),
  };
}

// The integral of a counter, so that its mean over any time is a difference.
function counter(raw, step) {
  const time = sums(raw.time);
  const integral = new Float64Array(time.length + 1);
  let most = 0;
  for (let i = 0; i < time.length; i++) {
    const end = i + 1 < time.length ? time[i + 1] : step;
    integral[i + 1] = integral[i] + raw.value[i] * (end - time[i]);
    most = Math.max(most, raw.value[i]);
  }
  return { name: raw.name, unit: raw.unit, time, value: raw.value, integral, most };
}

function schedule(raw) {
  const links = transfers(raw.links);
  links.left = added(raw.links.left, links.began);
  return {
    title: raw.title, facts: raw.facts, step: raw.step, ops: raw.ops,
    irName: raw.irName, noKernel: raw.noKernel, ir: raw.ir.split("\n"), kernel: raw.kernel ? raw.kernel.split("\n") : null,
    phases: { ...spans(raw.phases), name: raw.phases.name, names: raw.phases.names, families: raw.phases.families },
    layers: spans(raw.layers),
    core: { ...spans(raw.core), op: raw.core.op, count: raw.core.count, blocked: raw.core.blocked },
    hbm: transfers(raw.hbm),
    links,
    idle: { ...spans(raw.idle), cause: raw.idle.cause, causes: raw.idle.causes },
    path: { ...raw.path, ...spans(raw.path) },
    counters: raw.counters.map((one) => counter(one, raw.step)),
    vmem: {
      ...raw.vmem,
      buffers: raw.vmem.buffers.map((buffer) => ({
        ...buffer,
        live: spans(buffer.live),
        held: {
          ...spans(buffer.held), row: buffer.held.row, rows: buffer.held.rows, arrives: buffer.held.arrives,
          transfer: sums(buffer.held.transfer),
        },
      })),
    },
  };
}

// The first of sorted `values` that is more than `limit`.
function firstAbove(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Which of spans that do not overlap has `time`, -1 for none.
function spanAt(column, time) {
  const i = firstAbove(column.began, time) - 1;
  return i >= 0 && time < column.ended[i] ? i : -1;
}

function mean(counter, from, to) {
  const until = (time) => {
    const i = firstAbove(counter.time, time) - 1;
    return i < 0 ? 0 : counter.integral[i] + counter.value[i] * (time - counter.time[i]);
  };
  return to > from ? (until(to) - until(from)) / (to - from) : 0;
}
