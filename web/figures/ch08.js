// A cache that fills up: what each step computes, and what it only reads.
import { choice, el, paint, sentence, steps, table } from "./shared.js";

const LOOKS = {
  new: ["●", "computed"], again: ["✕", "computed again"], kept: ["○", "read from the cache"], none: ["", "not computed"],
  closed: ["–", "closed"],
};
const WAYS = { "without a cache": "without", "with a cache": "with" };

export default function draw(stage, { prompt, tokens, ways }) {
  const all = Array.from({ length: tokens }, (_, t) => t);
  const now = { way: "without", step: 0 };
  const last = ways.with.length - 1;
  const layer = table({ label: "Tokens in the layer", corner: "token", columns: all, rows: ["query", "key", "value"] });
  const scores = table({ label: "Scores of one head", corner: "query ↓ key →", columns: all, rows: all });
  const counts = table({
    label: "Counts", columns: ["without", "with"], rows: ["tokens this step", "tokens so far", "scores this step", "scores so far"],
  });
  const newest = el("p", { class: "play-product" });
  const { node: told, say } = sentence();
  const control = steps({
    last, named: (i) => `step ${i + 1} of ${last + 1}`, change: (i) => { now.step = i; show(); },
  });
  const look = (cell, state) => paint(cell, state, LOOKS[state][0], { spoken: LOOKS[state][1] });

  /** What the step does with token t: is it passed through the layer, and was it before? */
  function state(t, end, { rows }) {
    if (t >= end) return "none";
    if (t < end - rows) return "kept";
    return now.step > 0 && t < end - 1 ? "again" : "new";
  }

  function show() {
    const end = prompt + now.step;
    const step = ways[now.way][now.step];
    for (const t of all) {
      const is = state(t, end, step);
      look(layer.cell(0, t), is === "kept" ? "none" : is);
      look(layer.cell(1, t), is);
      look(layer.cell(2, t), is);
      const row = is === "kept" ? "none" : is;
      for (const key of all) look(scores.cell(t, key), key > t && row !== "none" ? "closed" : row);
    }
    ["without", "with"].forEach((way, column) => {
      const { rows, pairs, ...sums } = ways[way][now.step];
      [rows, sums["rows so far"], pairs, sums["pairs so far"]].forEach((count, row) =>
        paint(counts.cell(row, column), way === now.way ? "chosen" : "", String(count)));
    });
    newest.textContent = `Output of token ${end - 1}: ${step.out.join("  ")} …`;
    say(explain(step, end));
  }

  function explain({ rows, read }, end) {
    if (now.step === 0) return `The prompt of ${prompt} tokens passes through the layer at once. It makes token ${end}.`;
    return read
      ? `Only token ${end - 1} is computed; ${read} keys and values are read. Its output is the same.`
      : `All ${rows} tokens are computed, ${rows - 1} of them again, to make token ${end}.`;
  }

  stage.append(
    choice({ legend: "Generate", options: Object.keys(WAYS), change: (name) => { now.way = WAYS[name]; show(); } }),
    el("p", { class: "play-key" },
      ...["new", "again", "kept"].flatMap((name) => {
        const mark = el("span", { class: "play-mark" });
        look(mark, name);
        mark.classList.add("play-mark");
        return [mark, ` ${LOOKS[name][1]} `];
      })),
    el("div", { class: "play-two" },
      el("div", {}, layer.node, el("div", { class: "play-counts" }, counts.node)),
      el("div", {}, scores.node)),
    newest, told, control.node,
  );
  show();
}
