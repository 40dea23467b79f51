// A softmax under a temperature, every number of it in float16 or float32.
import { choice, el, number, paint, sentence, slider, svg, table } from "./shared.js";

const ROWS = ["score", "÷ T", "− largest", "eˣ of that", "weight"];
const FAR = 130; // the exponents on the axis
const [LEFT, RIGHT] = [12, 348];
const across = (x) => LEFT + ((Math.max(-FAR, Math.min(FAR, x)) + FAR) / (2 * FAR)) * (RIGHT - LEFT);

export default function draw(stage, { scores, temperatures, formats, states }) {
  const names = Object.keys(scores);
  const now = { scores: names[0], way: "plain", format: "float16", at: temperatures.indexOf("1") };
  const place = el("div", { class: "play-softmax" });
  const axis = svg("svg", { viewBox: "0 0 360 74", class: "play-axis", role: "img", "aria-label": "Where the exponents lie" });
  const { node: told, say } = sentence();

  function show() {
    const state = states[`${now.scores} ${now.way} ${now.format}`][now.at];
    const keys = scores[now.scores];
    const grid = table({ label: "Softmax", columns: [...keys.map((_, j) => `key ${j + 1}`), "sum"], rows: ROWS });
    keys.forEach((score, j) => {
      paint(grid.cell(0, j), "", score);
      paint(grid.cell(1, j), "", state.scaled[j]);
      if (now.way === "plain") paint(grid.cell(2, j), "is-off", "–", { spoken: "not done" });
      else paint(grid.cell(2, j), "", state.exponents[j]);
      paint(grid.cell(3, j), state.powers[j] === "∞" ? "bad" : "", state.powers[j]);
      const weight = state.weights[j];
      if (weight === "NaN") paint(grid.cell(4, j), "bad", weight);
      else paint(grid.cell(4, j), "weight", weight, { share: number(weight) });
    });
    paint(grid.cell(3, keys.length), state.total === "∞" || state.total === "0" ? "bad" : "", state.total);
    place.replaceChildren(grid.node);
    showAxis(state.exponents);
    say(explain(state));
  }

  function showAxis(exponents) {
    const { low, high } = formats[now.format];
    const word = (x, y, text, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor }, text);
    axis.replaceChildren(
      svg("rect", { x: LEFT, y: 24, width: RIGHT - LEFT, height: 18, class: "play-out" }),
      svg("rect", { x: across(low), y: 24, width: across(high) - across(low), height: 18, class: "play-in" }),
      word(across(low), 56, String(low).replace("-", "−"), "end"), word(across(high), 56, String(high), "start"),
      word(LEFT, 70, "← eˣ becomes 0", "start"), word(RIGHT, 70, "eˣ becomes ∞ →", "end"),
      word(across((low + high) / 2), 15, `${now.format} holds eˣ`),
      ...exponents.map((text) => {
        const x = number(text);
        const out = x < low || x > high;
        return out
          ? svg("path", { d: `M${across(x) - 6} 27l12 12m0-12l-12 12`, class: "play-cross" })
          : svg("circle", { cx: across(x), cy: 33, r: 6, class: "play-dot" });
      }),
    );
  }

  function explain({ total, weights }) {
    if (total === "0") return `In ${now.format} every exponential is too small and becomes 0: 0 / 0 is NaN.`;
    if (total === "∞") {
      return `In ${now.format} ${weights.includes("NaN") ? "an exponential is too large: ∞ / ∞ is NaN." : "the sum is too large: the weights become 0."}`;
    }
    const largest = Math.max(...weights.map(number));
    const how = largest > 0.99 ? "cold: one key takes nearly all" : largest < 1.06 / weights.length ? "hot: nearly equal shares" : "the larger the score, the larger the share";
    return `T = ${temperatures[now.at]}, ${how}.${now.way === "shifted" ? " The largest exponent is 0." : ""}`;
  }

  const set = (name) => (value) => { now[name] = value; show(); };
  stage.append(
    choice({ legend: "Scores", options: names, change: set("scores") }),
    el("div", { class: "play-row" },
      choice({ legend: "Softmax", options: ["plain", "shifted"], change: set("way") }),
      choice({ legend: "Numbers", options: Object.keys(formats), change: set("format") })),
    slider({ label: "temperature T", values: temperatures, start: now.at, change: set("at") }).node,
    axis, place, told,
  );
  show();
}
