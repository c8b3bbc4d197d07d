// The time that is shown, the same for all that is drawn.

const GUTTER = 112; // px on the left for the names of the lanes

class Axis {
  constructor(end) {
    this.end = end;
    this.from = 0;
    this.to = end;
    this.width = 1;
    this.listeners = [];
  }

  x(time) {
    return GUTTER + ((time - this.from) / (this.to - this.from)) * this.width;
  }

  time(x) {
    return this.from + ((x - GUTTER) / this.width) * (this.to - this.from);
  }

  get perPixel() {
    return (this.to - this.from) / this.width;
  }

  show(from, to) {
    const length = Math.min(Math.max(to - from, 20), this.end * 1.02);
    const first = Math.min(Math.max(from, -this.end * 0.01), this.end * 1.01 - length);
    this.from = first;
    this.to = first + length;
    for (const listener of this.listeners) listener();
  }

  zoom(factor, around) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  pan(by) {
    this.show(this.from + by, this.to + by);
  }

  // Round times, about one a hundred pixels.
  ticks() {
    const about = this.perPixel * 110;
    const power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= about);
    const found = [];
    for (let n = Math.ceil(this.from / step); n * step <= this.to; n++) found.push(n * step || 0); // no -0
    return { step, found };
  }
}

function micros(ns, digits) {
  const value = ns / 1000;
  const places = digits ?? (Math.abs(value) < 1 ? 3 : Math.abs(value) < 100 ? 2 : 1);
  return `${value.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: places })} µs`;
}

function bytes(count) {
  if (count >= 1 << 20) return `${(count / (1 << 20)).toFixed(2)} MiB`;
  return count >= 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${count} B`;
}

function drawAxis(ctx, axis, y, height) {
  const { step, found } = axis.ticks();
  ctx.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const time of found) {
    const x = Math.round(axis.x(time)) + 0.5;
    ctx.strokeStyle = ink("line");
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x, height);
    ctx.stroke();
    ctx.fillStyle = ink("quiet");
    const text = micros(time, step < 1000 ? 3 : 0);
    if (x + 4 + textWidth(ctx, text) < GUTTER + axis.width + 12) ctx.fillText(text, x + 4, y + 9);
  }
}
