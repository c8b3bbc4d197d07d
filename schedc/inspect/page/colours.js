// One colour for a family of phases, wherever it is seen: on the core, in its transfers, in VMEM.

const LIGHT = ["#4878b6", "#e08a2c", "#4f9d58", "#a76fb0", "#2fa3a3", "#c9a520", "#a0674b", "#e07b9a", "#7a86d8", "#7fa03a"];
const DARK = ["#6f9fe0", "#f0a04b", "#6cc077", "#c08dca", "#52c2c0", "#dcbc45", "#c28a6d", "#f098b2", "#98a3f0", "#a3c45c"];
const CAUSES = ["latency", "address", "data", "slots", "late", "end"];
const CAUSE = {
  light: ["#e3a62f", "#9a6bd0", "#3f9fc0", "#d0704a", "#8592a6", "#c0c6d0"],
  dark: ["#e8b44d", "#b08be0", "#62b9d8", "#e08a66", "#76839a", "#4a5260"],
};

const root = document.documentElement;

function theme() {
  return root.dataset.theme === "dark" ? "dark" : "light";
}

const variables = new Map();

function ink(name) {
  if (!variables.has(name)) variables.set(name, getComputedStyle(root).getPropertyValue(`--${name}`).trim());
  return variables.get(name);
}

function setTheme(name) {
  root.dataset.theme = name;
  variables.clear();
  patterns.clear();
}

function causeColour(cause) {
  return CAUSE[theme()][cause];
}

// The families with most time of the core and of transfers get a colour of their own.
function familiesByTime(schedules) {
  const time = new Map();
  const add = (family, amount) => time.set(family, (time.get(family) || 0) + amount);
  for (const one of schedules) {
    const { phases, core, hbm, ops } = one;
    for (let i = 0; i < core.n; i++) {
      const phase = ops.phase[core.op[i]];
      if (phase >= 0) add(phases.families[phase], core.ended[i] - core.began[i]);
    }
    for (let i = 0; i < hbm.n; i++) {
      const family = familyOfTransfer(one, i);
      if (family) add(family, hbm.ended[i] - hbm.began[i]);
    }
  }
  return [...time].sort((a, b) => b[1] - a[1]);
}

function familyOfOp(one, op) {
  const phase = one.ops.phase[op];
  return phase < 0 ? "" : one.phases.families[phase];
}

// Of the computation that first reads what it brings; of what leaves VMEM, of the phase that starts it.
function familyOfTransfer(one, i) {
  const use = one.hbm.use[i];
  return familyOfOp(one, use < 0 ? one.hbm.op[i] : one.core.op[use]);
}

const palette = new Map();

function setFamilies(families) {
  families.slice(0, LIGHT.length).forEach(([family], i) => palette.set(family, i));
}

function familyColour(family) {
  const i = palette.get(family);
  return i === undefined ? ink("other") : (theme() === "dark" ? DARK : LIGHT)[i];
}

const patterns = new Map();

// Hatching for time in which nothing is done.
function hatch(ctx) {
  if (!patterns.has("hatch")) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.fillStyle = ink("wait");
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = ink("wait-line");
    pen.lineWidth = 1;
    pen.beginPath();
    for (const x of [-6, 0, 6]) {
      pen.moveTo(x - 1, 7);
      pen.lineTo(x + 7, -1);
    }
    pen.stroke();
    patterns.set("hatch", ctx.createPattern(tile, "repeat"));
  }
  return patterns.get("hatch");
}

const contrasts = new Map();

// Black or white, whichever stands out more from `colour` by WCAG 2: never less than 4.5.
function textOn(colour) {
  if (!contrasts.has(colour)) {
    const [r, g, b] = [1, 3, 5]
      .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    contrasts.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff");
  }
  return contrasts.get(colour);
}
