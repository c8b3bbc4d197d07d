// Drawing many slices: those that are wide enough one by one, the others as what they add up to in every pixel.

const THIN = 1.2; // px below which a slice is only added up

function visible(column, axis) {
  return [firstAbove(column.ended, axis.from), firstAbove(column.began, axis.to)];
}

// Rectangles of spans that do not overlap. `colour(i)` may be null: nothing is drawn. `label(i)` is written if it fits.
// `least`: the share of a pixel that one is drawn with, however short it is.
function drawSpans(ctx, axis, column, y, height, { colour, label, outline, least }) {
  const [first, end] = visible(column, axis);
  const thin = new Map(); // colour -> px -> width
  for (let i = first; i < end; i++) {
    const fill = colour(i);
    if (fill === null) continue;
    const left = Math.max(axis.x(column.began[i]), GUTTER);
    const right = Math.min(axis.x(column.ended[i]), GUTTER + axis.width);
    const width = right - left;
    if (width < THIN) {
      addThin(thin, fill, left, width, least);
      continue;
    }
    ctx.fillStyle = fill;
    ctx.fillRect(left, y, width > 3 ? width - 0.6 : width, height);
    if (outline && outline(i)) frame(ctx, left, y, width, height);
    if (label && width > 26) writeIn(ctx, label(i), left, y, width, height, fill);
  }
  drawThin(ctx, thin, y, height);
}

function addThin(thin, fill, left, width, least = 0.02) {
  if (!thin.has(fill)) thin.set(fill, new Map());
  const pixels = thin.get(fill);
  const px = Math.floor(left);
  pixels.set(px, (pixels.get(px) || 0) + Math.max(width, least));
}

// In every pixel the colours one above the other, as high as their share of its time.
function drawThin(ctx, thin, y, height) {
  const level = new Map();
  for (const [fill, pixels] of thin) {
    ctx.fillStyle = fill;
    for (const [px, width] of pixels) {
      const low = level.get(px) || 0;
      const high = Math.min(1, low + width);
      ctx.fillRect(px, y + height * (1 - high), 1, height * (high - low));
      level.set(px, high);
    }
  }
}

function frame(ctx, x, y, width, height) {
  ctx.strokeStyle = ink("path");
  const line = height < 9 ? 1 : 1.6;
  ctx.lineWidth = line;
  ctx.strokeRect(x + line / 2, y + line / 2, Math.max(0.5, width - 0.6 - line), height - line);
  ctx.lineWidth = 1;
}

const widths = new Map();

function textWidth(ctx, text) {
  const key = ctx.font + text;
  if (!widths.has(key)) widths.set(key, ctx.measureText(text).width);
  return widths.get(key);
}

function writeIn(ctx, text, x, y, width, height, fill) {
  if (!text || height < 11) return;
  ctx.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  const room = width - 7;
  let shown = text;
  if (textWidth(ctx, shown) > room) {
    const letters = Math.floor((room / textWidth(ctx, shown)) * shown.length) - 1;
    if (letters < 3) return;
    shown = `${shown.slice(0, letters)}…`;
  }
  const plain = typeof fill === "string" ? fill : ink("wait");
  if (plain !== fill) {
    ctx.fillStyle = plain; // text on hatching gets a ground of its own
    ctx.fillRect(x + 2, y + height / 2 - 7, textWidth(ctx, shown) + 4, 14);
  }
  ctx.fillStyle = textOn(plain);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillText(shown, x + 4, y + height / 2 + 0.5);
}
