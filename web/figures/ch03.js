// Masks of any shape: a row says what its query may see, the last line how the weight is shared.
import { choice, el, number, paint, sentence, slider, table } from "./shared.js";

const KINDS = { causal: "causal", padding: "padding", "causal and padding": "both" };

export default function draw(stage, { most, scores, masks, weights }) {
  const counts = Array.from({ length: most }, (_, i) => String(i + 1));
  const upTo = (n) => Array.from({ length: n + 1 }, (_, i) => String(i));
  const now = { kind: "causal", queries: 3, keys: 5, length: 4, row: 0 };
  const place = el("div", { class: "play-mask" });
  const { node: told, say } = sentence();
  let grid;

  const mask = () => masks[[now.kind, now.queries, now.keys, ...(now.kind === "causal" ? [] : [now.length])].join(" ")];

  function build() {
    now.row = Math.min(now.row, now.queries - 1);
    const names = Array.from({ length: now.queries }, (_, i) => `query ${i}`);
    grid = table({
      label: "Mask", columns: Array.from({ length: now.keys }, (_, j) => `key ${j}`),
      rows: [...names, "score", "weight"], buttons: now.queries, onrow: pick,
    });
    mask().forEach((row, i) => [...row].forEach((open, j) =>
      paint(grid.cell(i, j), open === "1" ? "open" : "closed", open === "1" ? "●" : "–",
        { spoken: open === "1" ? "open" : "closed" })));
    place.replaceChildren(grid.node);
    pick(now.row);
  }

  function pick(row) {
    now.row = row;
    grid.pick(row);
    const line = mask()[row];
    [...line].forEach((open, j) => {
      paint(grid.cell(now.queries, j), open === "1" ? "" : "closed", open === "1" ? scores[j] : "−∞");
      paint(grid.cell(now.queries + 1, j), "weight", weights[line][j], { share: number(weights[line][j]) });
    });
    say(explain(row, line));
  }

  function explain(row, line) {
    const seen = [...line].filter((open) => open === "1").length;
    const sees = seen === 0 ? "no key at all: its weights are zeros"
      : seen === 1 ? "only key 0, which gets all the weight"
      : `keys 0 to ${seen - 1}, which share the weight`;
    const padded = now.length < now.keys ? `keys from ${now.length} on are padding` : "no key is padding";
    if (now.kind === "padding") return `Query ${row}, and ${padded}: it sees ${sees}.`;
    const position = row + now.keys - now.queries;
    const sum = `${row} + ${now.keys} − ${now.queries} = ${String(position).replace("-", "−")}`;
    const stands = position < 0 ? `would stand at ${sum}, before the first key` : `stands at position ${sum}`;
    return `Query ${row} ${stands}${now.kind === "both" ? `, and ${padded}` : ""}: it sees ${sees}.`;
  }

  const real = slider({
    label: "real keys", values: upTo(now.keys), start: now.length,
    change: (i) => { now.length = i; build(); },
  });
  function kind(name) {
    now.kind = KINDS[name];
    real.node.classList.toggle("is-off", now.kind === "causal");
    real.node.querySelector("input").disabled = now.kind === "causal";
    build();
  }
  function keys(i) {
    now.keys = i + 1;
    now.length = Math.min(now.length, now.keys);
    real.reset(upTo(now.keys), now.length);
    build();
  }
  stage.append(
    choice({ legend: "Mask", options: Object.keys(KINDS), change: kind }),
    el("div", { class: "play-sliders" },
      slider({ label: "queries", values: counts, start: now.queries - 1, change: (i) => { now.queries = i + 1; build(); } }).node,
      slider({ label: "keys", values: counts, start: now.keys - 1, change: keys }).node,
      real.node),
    place, told,
  );
  kind("causal");
}
