// The replay: recorded agents in their worlds, what they perceive and what they are about to do.
// Data: the element #replay-data, in the form that goodharts_jax/replay.py describes.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("replay-data").textContent);
  const root = document.getElementById("replay");
  const { size, view_radius: radius, steps, moves } = data;
  const FOOD = 1, POISON = 2;
  const TRAIL = 80, FLASH = 10;
  const reach = 2 * radius + 1;
  const names = Object.keys(data.modes);
  const spoken = (name) => name.replaceAll("_", " ");
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  // ---- what happened, from the recording -------------------------------------------------

  // Adds to a mode's columns what the drawing looks up: running totals and the energy and age
  // at the start of each step.
  function annotate(mode) {
    const running = (hits) => {
      const total = [0];
      for (let t = 0; t < steps; t++) total.push(total[t] + (hits(t) ? 1 : 0));
      return total;
    };
    mode.foodEaten = running((t) => mode.eaten[t] === FOOD);
    mode.poisonEaten = running((t) => mode.eaten[t] === POISON);
    mode.deaths = running((t) => mode.died[t]);
    mode.before = mode.energy.map((_, t) =>
      t === 0 || mode.died[t - 1] ? data.start_energy : mode.energy[t - 1]);
    mode.born = [];
    for (let t = 0; t < steps; t++) mode.born.push(t === 0 || mode.died[t - 1] ? t : mode.born[t - 1]);
    return mode;
  }
  const modes = Object.fromEntries(names.map((name) => [name, annotate(data.modes[name])]));
  const highest = Math.max(1, ...names.flatMap((name) => modes[name].before));

  // The codes of a world at the start of step t; going back replays from the beginning.
  class World {
    constructor(mode) { this.mode = mode; this.rewind(); }
    rewind() {
      this.codes = new Uint8Array(size * size);
      for (const cell of this.mode.food) this.codes[cell] = FOOD;
      for (const cell of this.mode.poison) this.codes[cell] = POISON;
      this.at = 0;
    }
    seek(t) {
      if (t < this.at) this.rewind();
      for (; this.at < t; this.at++) {
        const kind = this.mode.eaten[this.at];
        if (!kind) continue;
        const [x, y] = landing(this.mode, this.at);
        this.codes[y * size + x] = 0;
        this.codes[this.mode.regrown[this.at]] = kind;
      }
      return this.codes;
    }
  }
  const wrap = (value) => (value + size) % size;
  function landing(mode, t) {
    const [dx, dy] = moves[mode.action[t]];
    return [wrap(mode.x[t] + dx), wrap(mode.y[t] + dy)];
  }

  // ---- drawing -----------------------------------------------------------------------------

  // The page's colours, as the theme resolves them.
  const probe = root.appendChild(document.createElement("i"));
  let colour;
  function readColours() {
    colour = {};
    for (const name of ["paper", "raised", "ink", "faint", "rule", "blue", "vermillion", "purple"]) {
      probe.style.color = `var(--${name})`;
      colour[name] = getComputedStyle(probe).color;
    }
  }
  const kindColour = (kind) => (kind === FOOD ? colour.blue : colour.vermillion);

  function disc(pen, x, y, r) { pen.beginPath(); pen.arc(x, y, r, 0, 2 * Math.PI); }
  function diamond(pen, x, y, r) {
    pen.beginPath();
    pen.moveTo(x, y - r); pen.lineTo(x + r, y); pen.lineTo(x, y + r); pen.lineTo(x - r, y);
    pen.closePath();
  }
  // Food is a disc and poison a diamond: told apart without colour.
  function item(pen, kind, x, y, r) {
    if (kind === FOOD) disc(pen, x, y, r); else diamond(pen, x, y, 1.25 * r);
    pen.fillStyle = kindColour(kind); pen.fill();
  }
  function cross(pen, x, y, r, width) {
    pen.beginPath();
    pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r);
    pen.moveTo(x - r, y + r); pen.lineTo(x + r, y - r);
    pen.lineWidth = width; pen.stroke();
  }

  // The whole torus in a square of `side`; `part` in [0, 1) is how far step t has come.
  function drawWorld(pen, side, world, t, part) {
    const mode = world.mode, codes = world.seek(t), cell = side / size;
    const centre = (value) => (value + 0.5) * cell;
    pen.fillStyle = colour.raised; pen.fillRect(0, 0, side, side);
    pen.save();
    pen.beginPath(); pen.rect(0, 0, side, side); pen.clip();

    // Where agents died, fainter with time.
    pen.strokeStyle = colour.ink; pen.lineCap = "round";
    for (let s = 0; s < t; s++) {
      if (!mode.died[s]) continue;
      const [x, y] = landing(mode, s);
      pen.globalAlpha = 0.2 + 0.6 * Math.exp(-(t - s) / 40);
      cross(pen, centre(x), centre(y), 0.75 * cell, 0.3 * cell);
    }
    pen.globalAlpha = 1;

    for (let i = 0; i < codes.length; i++)
      if (codes[i]) item(pen, codes[i], centre(i % size), centre(Math.floor(i / size)), 0.58 * cell);

    // The path of this life.
    pen.strokeStyle = colour.ink; pen.lineWidth = 0.32 * cell;
    for (let s = Math.max(mode.born[t], t - TRAIL); s < t; s++) {
      const [dx, dy] = moves[mode.action[s]];
      pen.globalAlpha = 0.75 * (1 - (t - s) / TRAIL);
      pen.beginPath();
      pen.moveTo(centre(mode.x[s]), centre(mode.y[s]));
      pen.lineTo(centre(mode.x[s] + dx), centre(mode.y[s] + dy));
      pen.stroke();
    }

    // A ring spreads where something was eaten or somebody died.
    for (let s = Math.max(0, t - FLASH); s < t; s++) {
      if (!mode.eaten[s] && !mode.died[s]) continue;
      const age = (t + part - s) / FLASH, [x, y] = landing(mode, s);
      pen.globalAlpha = Math.max(0, 1 - age);
      pen.strokeStyle = mode.died[s] ? colour.ink : kindColour(mode.eaten[s]);
      pen.lineWidth = 0.4 * cell;
      disc(pen, centre(x), centre(y), (1 + (mode.died[s] ? 5 : 2.5) * age) * cell);
      pen.stroke();
    }
    pen.globalAlpha = 1;

    // The agent, and the square it can see; both show up on the other side of an edge.
    const [dx, dy] = moves[mode.action[t]];
    const x = mode.x[t] + part * dx, y = mode.y[t] + part * dy;
    for (const shiftX of [-size, 0, size]) for (const shiftY of [-size, 0, size]) {
      const cx = centre(x + shiftX), cy = centre(y + shiftY), half = (radius + 0.5) * cell;
      if (cx < -half || cy < -half || cx > side + half || cy > side + half) continue;
      pen.strokeStyle = colour.ink;
      pen.lineWidth = 1;
      pen.globalAlpha = 0.55;
      pen.strokeRect(cx - half, cy - half, 2 * half, 2 * half);
      pen.globalAlpha = 1;
      disc(pen, cx, cy, 1.15 * cell);
      pen.fillStyle = colour.ink;
      pen.fill();
      pen.lineWidth = 0.3 * cell;
      pen.strokeStyle = colour.paper;
      pen.stroke();
    }
    pen.restore();
    pen.strokeStyle = colour.rule;
    pen.lineWidth = 1;
    pen.strokeRect(0.5, 0.5, side - 1, side - 1);
  }

  // What the mode lets its agent perceive of the view: two channels that differ are drawn in the
  // colours of food and poison, one and the same channel in shades of a third colour.
  const single = (mode) => mode.perceive.every(([first, second]) => first === second);
  function drawPercept(pen, side, world, t) {
    const mode = world.mode, codes = world.seek(t), cell = side / reach;
    const most = Math.max(...mode.perceive.flat(), 1e-9);
    const hues = single(mode) ? [colour.purple] : [colour.blue, colour.vermillion];
    pen.fillStyle = colour.raised;
    pen.fillRect(0, 0, side, side);
    for (let row = 0; row < reach; row++) for (let column = 0; column < reach; column++) {
      const x = wrap(mode.x[t] + column - radius), y = wrap(mode.y[t] + row - radius);
      const seen = mode.perceive[codes[y * size + x]];
      hues.forEach((hue, channel) => {
        if (!seen[channel]) return;
        pen.globalAlpha = seen[channel] / most;
        pen.fillStyle = hue;
        pen.fillRect(column * cell, row * cell, cell, cell);
      });
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = colour.paper;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let i = 1; i < reach; i++) {
      pen.moveTo(i * cell, 0); pen.lineTo(i * cell, side);
      pen.moveTo(0, i * cell); pen.lineTo(side, i * cell);
    }
    pen.stroke();
    disc(pen, side / 2, side / 2, 0.34 * cell);
    pen.fillStyle = colour.ink;
    pen.fill();
  }

  // The eight moves around the agent, each with its probability; the one taken is framed. The
  // critic's value, where there is one, stands in the middle.
  function drawActions(pen, side, mode, t) {
    const cell = side / 3, chances = mode.probabilities[t];
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    moves.forEach(([dx, dy], action) => {
      const x = (dx + 1) * cell, y = (dy + 1) * cell, chance = chances[action] / 1000;
      pen.fillStyle = colour.raised;
      pen.fillRect(x + 1, y + 1, cell - 2, cell - 2);
      pen.globalAlpha = chance;
      pen.fillStyle = colour.ink;
      pen.fillRect(x + 1, y + 1, cell - 2, cell - 2);
      pen.globalAlpha = 1;
      pen.fillStyle = chance > 0.5 ? colour.paper : colour.ink;
      pen.font = `${Math.round(0.3 * cell)}px ${sans}`;
      pen.fillText(Math.round(100 * chance), x + cell / 2, y + cell / 2);
      if (action === mode.action[t]) {
        pen.strokeStyle = colour.purple;
        pen.lineWidth = 2.5;
        pen.strokeRect(x + 2, y + 2, cell - 4, cell - 4);
      }
    });
    if (!mode.value) return;
    pen.fillStyle = colour.faint;
    pen.font = `${Math.round(0.2 * cell)}px ${sans}`;
    pen.fillText("value", side / 2, side / 2 - 0.2 * cell);
    pen.fillStyle = colour.ink;
    pen.font = `${Math.round(0.28 * cell)}px ${sans}`;
    pen.fillText(mode.value[t].toFixed(1).replace("-", "−"), side / 2, side / 2 + 0.12 * cell);
  }

  // Energy over the whole recording, on a square-root scale that all modes share.
  function drawEnergy(pen, width, height, mode, t) {
    const floor = height - 12;
    const x = (s) => (s / (steps - 1)) * width;
    const y = (energy) => floor - Math.sqrt(Math.max(0, energy) / highest) * (floor - 14);
    pen.fillStyle = colour.raised;
    pen.fillRect(0, 0, width, floor);
    for (const [until, alpha] of [[steps - 1, 0.22], [t, 1]]) {
      pen.globalAlpha = alpha;
      pen.beginPath();
      for (let s = 0; s <= until; s++) {
        pen.lineTo(x(s), y(mode.before[s]));
        if (mode.died[s]) pen.lineTo(x(s), floor);
      }
      pen.strokeStyle = colour.ink;
      pen.lineWidth = 1.2;
      pen.stroke();
      pen.lineTo(x(until), floor); pen.lineTo(0, floor);
      pen.fillStyle = colour.ink;
      pen.globalAlpha = 0.14 * alpha;
      pen.fill();
      pen.globalAlpha = alpha;
      pen.strokeStyle = colour.vermillion;
      for (let s = 0; s <= until; s++)
        if (mode.died[s]) cross(pen, clamp(x(s), 3, width - 3), height - 5, 2.6, 1.3);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colour.purple; pen.fillRect(clamp(x(t) - 0.75, 0, width - 1.5), 0, 1.5, floor);
    pen.fillStyle = colour.faint;
    pen.font = `11px ${sans}`;
    pen.textAlign = "left"; pen.textBaseline = "top";
    pen.fillText(`energy, to ${highest.toFixed(1)} (square-root scale)`, 4, 3);
  }

  // ---- panels and controls -----------------------------------------------------------------

  const sans = getComputedStyle(root).fontFamily;
  const sentence = (mode) => {
    const [, food, poison] = mode.perceive;
    if (!single(mode)) return "perceives food and poison as what they are";
    if (food[0] === poison[0]) return `perceives one number, ${food[0]} for food and poison alike`;
    return `perceives one number: food ${food[0]}, poison ${poison[0]}`;
  };

  // Sizes a canvas's bitmap to its place on the page and returns a pen in page pixels.
  function penOf(canvas) {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    return [pen, box.width, box.height];
  }

  class Panel {
    constructor(element, name, place) {
      this.element = element;
      const select = element.querySelector("select");
      select.ariaLabel = `Mode in the ${place} world`;
      for (const option of names) select.add(new Option(spoken(option), option));
      select.value = name;
      select.addEventListener("change", () => { this.show(select.value); draw(); });
      this.show(name);
    }
    show(name) {
      this.name = name;
      this.world = new World(modes[name]);
      this.element.querySelector(".percept").textContent = sentence(modes[name]);
    }
    draw(t, part) {
      const find = (selector) => this.element.querySelector(selector), mode = this.world.mode;
      let [pen, width, height] = penOf(find("canvas.world"));
      drawWorld(pen, width, this.world, t, part);
      [pen, width] = penOf(find("canvas.view"));
      drawPercept(pen, width, this.world, t);
      [pen, width] = penOf(find("canvas.actions"));
      drawActions(pen, width, mode, t);
      [pen, width, height] = penOf(find("canvas.energy"));
      drawEnergy(pen, width, height, mode, t);
      for (const [name, value] of Object.entries({
        food: mode.foodEaten[t], poison: mode.poisonEaten[t], deaths: mode.deaths[t],
        age: t - mode.born[t], now: Math.max(0, mode.before[t]).toFixed(2),
      })) find(`[data-count=${name}]`).textContent = value;
    }
  }

  const preferred = ["ground_truth", "proxy"].filter((name) => name in modes);
  const chosen = [...new Set([...preferred, ...names])].slice(0, 2);
  const template = root.querySelector("template");
  const panels = chosen.map((name, index) => {
    const element = template.content.firstElementChild.cloneNode(true);
    root.querySelector(".panels").append(element);
    return new Panel(element, name, ["first", "second"][index]);
  });

  const play = root.querySelector("[name=play]"), scrub = root.querySelector("[name=scrub]");
  const speed = root.querySelector("[name=speed]"), clock = root.querySelector("output");
  scrub.max = steps - 1;
  let now = 0, playing = false, last = 0;

  function draw() {
    const t = Math.floor(now);
    for (const panel of panels) panel.draw(t, now - t);
    scrub.value = t;
    clock.textContent = `step ${t.toLocaleString("en")} of ${(steps - 1).toLocaleString("en")}`;
  }
  function seek(t) { now = clamp(t, 0, steps - 1); draw(); }
  function toggle(on = !playing) {
    playing = on;
    play.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (now >= steps - 1) now = 0;
    last = performance.now();
    requestAnimationFrame(tick);
  }
  function tick(time) {
    if (!playing) return;
    // After a hidden tab comes back, go on from where it was.
    const elapsed = clamp(time - last, 0, 100);
    last = time;
    seek(now + (elapsed / 1000) * Number(speed.value));
    if (now >= steps - 1) toggle(false); else requestAnimationFrame(tick);
  }
  function hold(t) { toggle(false); seek(t); }

  play.addEventListener("click", () => toggle());
  root.querySelector("[name=back]").addEventListener("click", () => hold(Math.ceil(now) - 1));
  root.querySelector("[name=forward]").addEventListener("click", () => hold(Math.floor(now) + 1));
  scrub.addEventListener("input", () => hold(Number(scrub.value)));
  for (const panel of panels) {
    const strip = panel.element.querySelector("canvas.energy");
    const point = (event) => {
      const box = strip.getBoundingClientRect();
      hold(Math.round(((event.clientX - box.left) / box.width) * (steps - 1)));
    };
    strip.addEventListener("pointerdown", (event) => { strip.setPointerCapture(event.pointerId); point(event); });
    strip.addEventListener("pointermove", (event) => { if (event.buttons) point(event); });
  }

  // A still for a paper: both worlds with their counts, at three times the page's resolution.
  root.querySelector("[name=still]").addEventListener("click", () => {
    const side = 480, gap = 24, head = 30, foot = 34, t = Math.floor(now);
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    canvas.width = 3 * (panels.length * (side + gap) + gap);
    canvas.height = 3 * (side + head + foot + gap);
    pen.scale(3, 3);
    pen.fillStyle = colour.paper; pen.fillRect(0, 0, canvas.width, canvas.height);
    panels.forEach((panel, i) => {
      const mode = panel.world.mode;
      pen.save();
      pen.translate(gap + i * (side + gap), head + gap / 2);
      drawWorld(pen, side, panel.world, t, 0);
      pen.fillStyle = colour.ink;
      pen.textBaseline = "alphabetic"; pen.textAlign = "left";
      pen.font = `600 16px ${sans}`;
      pen.fillText(spoken(panel.name), 0, -9);
      pen.font = `14px ${sans}`;
      pen.fillText(`${mode.foodEaten[t]} food, ${mode.poisonEaten[t]} poison, ${mode.deaths[t]} deaths in ${t} steps`, 0, side + 21);
      pen.restore();
    });
    const link = document.createElement("a");
    link.download = `replay-${panels.map((panel) => panel.name).join("-")}-${t}.png`;
    link.href = canvas.toDataURL("image/png");
    link.click();
  });

  const redraw = () => { readColours(); draw(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(redraw).observe(root);
  redraw();
})();
