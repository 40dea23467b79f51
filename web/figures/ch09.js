// A sliding window's reach: from one output down through the layers to the inputs.
import { el, sentence, slider, svg } from "./shared.js";

const [TOP, BOTTOM] = [34, 246];

export default function draw(stage, { n, layers: most, windows }) {
  const now = { window: "3", layers: 2, output: n - 1 };
  const x = (position) => 20 + (position * 320) / (n - 1);
  const y = (level) => BOTTOM - (level * (BOTTOM - TOP)) / now.layers; // level 0: the inputs
  const picture = svg("svg", { viewBox: "0 0 360 276", class: "play-reach", role: "img", "aria-label": "Reach of the window" });
  const { node: told, say } = sentence();
  const upTo = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => String(from + i));

  /** Does the node at this level lie on a way to the output? */
  function reaches(level, position) {
    const left = now.layers - level;
    if (left === 0) return position === now.output;
    const found = windows[now.window].layers[now.output][position];
    return found > 0 && found <= left;
  }

  function show() {
    const { open } = windows[now.window];
    const lines = []; // lines first: nodes lie on them
    const nodes = [];
    for (let level = 0; level <= now.layers; level += 1) {
      nodes.push(svg("text", { x: 10, y: y(level) - 15 }, level ? `layer ${level}` : "inputs"));
      for (let i = 0; i < n; i += 1) {
        const on = reaches(level, i);
        nodes.push(svg("circle", {
          cx: x(i), cy: y(level), r: on ? 9 : 5,
          class: on ? "play-dot" : i > now.output ? "play-future" : "play-quiet",
        }));
        if (level === 0) nodes.push(svg("text", { x: x(i), y: BOTTOM + 24, "text-anchor": "middle", class: on ? "is-on" : "" }, i));
        if (!on || level === 0) continue;
        for (let j = 0; j < n; j += 1) {
          if (open[i][j]) lines.push(svg("line", { x1: x(i), y1: y(level), x2: x(j), y2: y(level - 1) }));
        }
      }
    }
    picture.replaceChildren(...lines, ...nodes);
    explain();
  }

  function explain() {
    const seen = windows[now.window].seen[now.layers - 1][now.output];
    const formula = now.layers * (Number(now.window) - 1) + 1;
    const count = `${now.layers} · (${now.window} − 1) + 1 = ${formula}`;
    const inputs = seen === 1 ? "1 input" : `${seen} inputs`;
    const range = seen === 1 ? "itself" : `${now.output - seen + 1} to ${now.output}`;
    say(formula > seen ? `Output ${now.output} sees ${inputs}, ${range}: all there are, for ${count}.`
      : `Output ${now.output} sees ${inputs}, ${range}: ${count}.`);
  }

  const output = slider({ label: "output", values: upTo(0, n - 1), start: now.output, change: (i) => { now.output = i; show(); } });
  function point(event) {
    const box = picture.getBoundingClientRect();
    const place = Math.round((((event.clientX - box.left) / box.width) * 360 - 20) / (320 / (n - 1)));
    const to = Math.max(0, Math.min(n - 1, place));
    if (to !== now.output) output.set(to, true);
  }
  picture.addEventListener("click", point);
  picture.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(event));
  stage.append(
    el("div", { class: "play-sliders" },
      slider({ label: "window", values: Object.keys(windows), start: 2, change: (i) => { now.window = Object.keys(windows)[i]; show(); } }).node,
      slider({ label: "layers", values: upTo(1, most), start: 1, change: (i) => { now.layers = i + 1; show(); } }).node,
      output.node),
    picture, told,
  );
  show();
}
