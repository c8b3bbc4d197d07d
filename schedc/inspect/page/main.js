// The page: puts the panels on the canvas, follows pointer and keys.

const $ = (id) => document.getElementById(id);

async function begin() {
  const data = await unpack($("data").textContent);
  $("data").remove();
  const schedules = data.schedules.map(schedule);
  setFamilies(familiesByTime(schedules));
  const saved = new URLSearchParams(location.search).get("theme");
  setTheme(saved || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const axis = new Axis(Math.max(...schedules.map((one) => one.step)));
  const panels = schedules.map((one, n) => new Panel(one, axis, schedules.length > 1 ? "AB"[n] : "", moves(data.differs, n)));
  const page = new Page(axis, panels, data.differs);
  const [from, to] = data.view;
  $("status").textContent = "";
  page.layout();
  axis.show(from, to ?? axis.end);
  window.timeline = page; // for the console
}

class Page {
  constructor(axis, panels, differs) {
    this.axis = axis;
    this.panels = panels;
    this.differs = differs;
    this.hovered = null;
    this.pinned = null;
    this.asked = false;
    this.stage = $("lanes");
    this.axis.listeners.push(() => this.ask());
    this.titles();
    this.legend();
    this.pointer();
    this.overviewPointer();
    this.keys();
    this.differences();
    this.say(null);
    $("fit").onclick = () => axis.show(0, axis.end);
    $("theme").onclick = () => {
      setTheme(theme() === "dark" ? "light" : "dark");
      this.legend();
      this.ask();
    };
    $("search").onsubmit = (event) => {
      event.preventDefault();
      this.find($("query").value.trim().toLowerCase());
    };
    new ResizeObserver(() => this.layout()).observe(this.stage);
  }

  titles() {
    $("titles").innerHTML = this.panels
      .map(({ one, letter }) => {
        const facts = one.facts.slice(0, 4).map(([name, value]) => `<span class="fact">${name} <b>${escaped(value)}</b></span>`);
        const all = one.facts.map(([name, value]) => `${name} ${value}`).join("\n");
        const mark = letter ? `<span class="letter">${letter}</span>` : "";
        return `<div class="schedule" title="${escaped(all)}">${mark}<span class="title">${escaped(one.title)}</span>${facts.join("")}</div>`;
      })
      .join("");
  }

  legend() {
    const swatch = (colour, text) => `<span><i style="background:${colour}"></i>${escaped(text)}</span>`;
    const families = [...palette.keys()].map((family) => swatch(familyColour(family), family));
    const others = [
      swatch(ink("other"), "other phases"),
      swatch(ink("issue"), "issues"),
      `<span><i class="waits"></i>core waits</span>`,
      swatch(ink("path"), "critical transfer"),
      ...(this.differs ? [swatch(ink("moved"), "moved")] : []),
      ...(this.panels.some(({ one }) => one.links.n) ? [swatch(ink("exchange"), "critical exchange")] : []),
    ];
    const met = new Set(this.panels.flatMap(({ one }) => [...one.idle.cause]));
    const causes = CAUSES.flatMap((name, i) => (met.has(i) ? [swatch(causeColour(i), `idle: ${name}`)] : []));
    $("legend").innerHTML = [...families, ...others, ...causes].join("");
  }

  // What is pointed at; if nothing is, what differs between the two schedules, or how to get about.
  say(thing) {
    $("details").innerHTML = !thing && this.listing ? differencesOf(this.differs) : detailsOf(thing);
  }

  differences() {
    this.listing = Boolean(this.differs);
    const button = $("differences");
    button.hidden = !this.differs;
    button.onclick = () => {
      this.listing = !this.listing || Boolean(this.pinned);
      this.pin(null);
      button.setAttribute("aria-pressed", String(this.listing));
    };
    $("details").addEventListener("click", (event) => {
      const asked = event.target.closest("[data-moved]");
      if (asked) this.showMoved(Number(asked.dataset.moved), Number(asked.dataset.panel));
    });
  }

  // The next execution in view's order of a transfer that is started elsewhere in the other schedule; the first after the last.
  showMoved(entry, number) {
    const panel = this.panels[number];
    const ops = new Set(this.differs.moved[entry][3 + number]);
    const same = this.pinned && this.pinned.panel === panel && this.pinned.entry === entry;
    const after = same ? this.pinned.time : -1;
    let best = null;
    for (const kind of ["hbm", "links"]) {
      const column = panel.one[kind];
      const found = [...column.issued.keys()].filter((i) => ops.has(column.op[i]));
      const i = found.find((at) => column.issued[at] > after);
      if (i !== undefined && (!best || column.issued[i] < best.time)) best = { panel, kind, i, time: column.issued[i], entry };
    }
    if (!best) {
      if (same) {
        this.pinned = null;
        this.showMoved(entry, number);
      }
      return;
    }
    const length = Math.min(this.axis.to - this.axis.from, 40000);
    this.axis.show(best.time - length / 3, best.time + (2 * length) / 3);
    this.pin(best);
    const lane = panel.lane(best.kind === "hbm" ? "hbm" : "core");
    const { height } = this.stage.getBoundingClientRect();
    if (lane.y < this.stage.scrollTop + 22 || lane.y + lane.height > this.stage.scrollTop + height) this.stage.scrollTop = panel.lanes[0].y - 22;
  }

  layout() {
    const { width, height } = this.stage.getBoundingClientRect();
    this.axis.width = Math.max(100, width - GUTTER - 14);
    const room = (height - 22) / this.panels.length;
    let y = 22;
    for (const panel of this.panels) y = panel.arrange(y, room);
    this.height = Math.max(height, y);
    const ratio = devicePixelRatio || 1;
    for (const canvas of [$("drawing"), $("marks")]) {
      canvas.width = width * ratio;
      canvas.height = this.height * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${this.height}px`;
    }
    const overview = $("overview");
    overview.width = overview.clientWidth * ratio;
    overview.height = overview.clientHeight * ratio;
    this.ask();
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  pen(id) {
    const canvas = $(id);
    const ctx = canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    return ctx;
  }

  draw() {
    const ctx = this.pen("drawing");
    drawAxis(ctx, this.axis, 0, this.height);
    for (const panel of this.panels) panel.draw(ctx);
    this.drawOverview();
    this.mark();
  }

  drawOverview() {
    const ctx = this.pen("overview");
    const { axis, panels } = this;
    const height = 40 / panels.length;
    panels.forEach(({ one }, n) => {
      const rate = one.counters.find((counter) => counter.unit === "GB/s");
      for (let px = 0; px < axis.width; px++) {
        const from = (px / axis.width) * axis.end;
        const share = rate.most ? mean(rate, from, from + axis.end / axis.width) / rate.most : 0;
        ctx.fillStyle = ink("curve");
        ctx.fillRect(GUTTER + px, 2 + (n + 1) * height - share * (height - 3), 1, share * (height - 3));
      }
    });
    ctx.font = LABEL_FONT;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    ctx.fillStyle = ink("quiet");
    panels.forEach(({ letter }, n) => ctx.fillText(letter ? `${letter} HBM` : "HBM, whole step", GUTTER - 8, 2 + (n + 0.5) * height));
    const [left, right] = [this.axis.from, this.axis.to].map((time) => GUTTER + (Math.min(Math.max(time / axis.end, 0), 1)) * axis.width);
    ctx.fillStyle = ink("brush");
    ctx.fillRect(left, 0, Math.max(2, right - left), 44);
    ctx.strokeStyle = ink("brush-edge");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(left + 0.5, 1, Math.max(2, right - left - 1), 42);
  }

  // The thing that is pointed at, what belongs to it, and the way of a transfer.
  mark() {
    const ctx = this.pen("marks");
    const thing = this.pinned || this.hovered;
    if (this.chosen) {
      ctx.fillStyle = ink("brush");
      ctx.fillRect(Math.min(...this.chosen), 0, Math.abs(this.chosen[1] - this.chosen[0]), this.height);
    }
    if (!thing) return;
    const { panel } = thing;
    const said = describe(thing);
    const own = panel.box(thing.kind, thing.i);
    ctx.strokeStyle = ink("mark");
    const boxes = said.related.map(([kind, i]) => panel.box(kind, i)).filter(Boolean);
    ctx.lineWidth = 1.5;
    for (const [x, y, width, height] of boxes) ctx.strokeRect(x, y, width, height);
    if (own) {
      ctx.lineWidth = 2.5;
      ctx.strokeRect(own[0], own[1], own[2], own[3]);
      ctx.lineWidth = 1.2;
      ctx.setLineDash([4, 3]);
      for (const [x, y, width, height] of boxes.slice(0, 48)) {
        ctx.beginPath();
        const [x0, y0] = [own[0] + (x > own[0] ? own[2] : 0), own[1] + own[3] / 2];
        const [x1, y1] = [x + (x > own[0] ? 0 : width), y + height / 2];
        ctx.moveTo(x0, y0);
        ctx.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
        ctx.stroke();
      }
      ctx.setLineDash([]);
    }
  }

  point(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + this.stage.scrollTop];
  }

  hover(thing, event) {
    this.hovered = thing;
    const tip = $("tip");
    tip.hidden = !thing || !event;
    if (thing && event) {
      tip.innerHTML = tipOf(thing);
      const { width, height } = tip.getBoundingClientRect();
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
      tip.style.top = `${event.clientY + 18 + height > $("details").getBoundingClientRect().top ? event.clientY - height - 12 : event.clientY + 18}px`;
    }
    if (!this.pinned) this.say(thing);
    this.mark();
  }

  pin(thing) {
    this.pinned = thing;
    this.say(thing || this.hovered);
    this.mark();
  }

  pointer() {
    const { stage, axis } = this;
    let held = null;
    stage.addEventListener("wheel", (event) => {
      const [x] = this.point(event);
      if (event.shiftKey || x < GUTTER) stage.scrollTop += event.deltaY || event.deltaX;
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) axis.pan(event.deltaX * axis.perPixel);
      else axis.zoom(Math.exp(event.deltaY * 0.0022), axis.time(x));
      event.preventDefault();
    }, { passive: false });
    stage.addEventListener("pointerdown", (event) => {
      const [x] = this.point(event);
      held = { x, from: axis.from, moved: false, choosing: event.shiftKey };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      const [x, y] = this.point(event);
      if (!held) {
        this.hover(this.at(x, y), event);
        return;
      }
      if (Math.abs(x - held.x) > 3) held.moved = true;
      if (!held.moved) return;
      this.hover(null);
      if (held.choosing) {
        this.chosen = [held.x, x];
        this.mark();
      } else {
        stage.classList.add("dragging");
        axis.show(held.from - (x - held.x) * axis.perPixel, held.from - (x - held.x) * axis.perPixel + axis.to - axis.from);
      }
    });
    stage.addEventListener("pointerup", (event) => {
      const [x, y] = this.point(event);
      stage.classList.remove("dragging");
      if (held && held.choosing && held.moved) {
        const [from, to] = [axis.time(Math.min(held.x, x)), axis.time(Math.max(held.x, x))];
        this.chosen = null;
        axis.show(from, to);
      } else if (held && !held.moved) this.pin(this.at(x, y));
      held = null;
    });
    stage.addEventListener("pointerleave", () => this.hover(null));
    stage.addEventListener("dblclick", (event) => {
      const thing = this.at(...this.point(event));
      if (thing) this.zoomTo(thing);
    });
  }

  overviewPointer() {
    const overview = $("overview");
    const { axis } = this;
    let grip = null;
    const time = (event) => ((event.clientX - GUTTER) / axis.width) * axis.end;
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      const at = time(event);
      const inside = at > axis.from && at < axis.to && axis.to - axis.from < axis.end * 0.9;
      grip = inside ? { pan: at - axis.from } : { from: at };
    });
    overview.addEventListener("pointermove", (event) => {
      if (!grip) return;
      const at = time(event);
      if ("pan" in grip) axis.show(at - grip.pan, at - grip.pan + axis.to - axis.from);
      else if (Math.abs(at - grip.from) > axis.end / axis.width) axis.show(Math.min(at, grip.from), Math.max(at, grip.from));
    });
    overview.addEventListener("pointerup", () => {
      grip = null;
    });
  }

  keys() {
    const { axis } = this;
    const length = () => axis.to - axis.from;
    const middle = () => (axis.from + axis.to) / 2;
    const actions = {
      w: () => axis.zoom(0.7, middle()),
      s: () => axis.zoom(1 / 0.7, middle()),
      a: () => axis.pan(-length() * 0.2),
      d: () => axis.pan(length() * 0.2),
      0: () => axis.show(0, axis.end),
      Escape: () => this.pin(null),
      ArrowRight: () => this.next(1),
      ArrowLeft: () => this.next(-1),
    };
    addEventListener("keydown", (event) => {
      if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (actions[event.key]) {
        actions[event.key]();
        event.preventDefault();
      }
    });
  }

  at(x, y) {
    for (const panel of this.panels) {
      const thing = panel.hit(x, y);
      if (thing) return thing;
    }
    return null;
  }

  column(thing) {
    const { one } = thing.panel;
    if (thing.kind !== "held" && thing.kind !== "live") return [one[thing.kind], thing.i];
    return [one.vmem.buffers[thing.i[0]][thing.kind], thing.i[1]];
  }

  zoomTo(thing) {
    const [column, i] = this.column(thing);
    if (!column) return;
    const [began, ended] = [(column.issued || column.began)[i], column.ended[i]];
    const room = Math.max(ended - began, 40) * 1.5;
    this.axis.show(began - room, ended + room);
  }

  // The next or previous slice of the same kind, kept in view.
  next(by) {
    const thing = this.pinned || this.hovered;
    if (!thing || thing.kind === "held" || thing.kind === "live" || !thing.panel.one[thing.kind]?.began) return;
    const column = thing.panel.one[thing.kind];
    const i = Math.min(Math.max(thing.i + by, 0), column.n - 1);
    this.pin({ ...thing, i, time: column.began[i] });
    this.reveal(column.began[i], column.ended[i]);
  }

  reveal(began, ended) {
    const { axis } = this;
    const middle = (began + ended) / 2;
    if (began < axis.from || ended > axis.to) axis.show(middle - (axis.to - axis.from) / 2, middle + (axis.to - axis.from) / 2);
  }

  // The first slice of the core or transfer that is called so after what is pinned.
  find(text) {
    const panel = this.pinned ? this.pinned.panel : this.panels[0];
    const { one } = panel;
    const after = this.pinned ? this.pinned.time : -1;
    let best = null;
    for (const kind of ["core", "hbm", "phases"]) {
      const column = one[kind];
      const name = (i) => (kind === "phases" ? one.phases.names[column.name[i]] : one.ops.name[column.op[i]]);
      const times = column.issued || column.began;
      for (let i = firstAbove(times, after); i < column.n; i++) {
        if (!name(i).toLowerCase().includes(text)) continue;
        if (!best || times[i] < best.time) best = { panel, kind, i, time: times[i] };
        break;
      }
    }
    $("query").classList.toggle("none", !best);
    if (!best) {
      this.pin(null);
      return;
    }
    const [column, i] = this.column(best);
    const length = Math.min(this.axis.to - this.axis.from, Math.max(20000, (column.ended[i] - column.began[i]) * 8));
    this.axis.show(best.time - length / 3, best.time + (2 * length) / 3);
    this.pin(best);
  }
}

begin().catch((error) => {
  $("status").textContent = `This page cannot be shown here: ${error}`;
  throw error;
});
