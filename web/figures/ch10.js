// The online softmax: block by block, what is summed up shrinks whenever the maximum rises.
import { choice, el, number, paint, sentence, steps, table } from "./shared.js";

export default function draw(stage, { powers, values, blocks }) {
  const sizes = Object.keys(blocks);
  const now = { size: sizes[1], step: 0 };
  const keys = table({
    label: "Keys", columns: powers.map((_, j) => `key ${j + 1}`), rows: ["eˢ", "value", "eˢ⁻ᵐ"],
  });
  const bars = powers.map((_, j) => {
    const bar = el("span", { class: "play-column" });
    const text = el("span", {});
    keys.cell(2, j).append(el("span", { class: "play-well", "aria-hidden": "true" }, bar), text);
    return { bar, text };
  });
  const merge = table({ label: "The merge", columns: ["so far", "this block", "merged"], rows: ["m", "times", "ℓ", "o"] });
  const out = el("p", { class: "play-product" });
  const { node: told, say } = sentence();
  const control = steps({
    last: blocks[now.size].length - 1, named: (i) => (i ? `block ${i}` : "before the first block"),
    change: (i) => { now.step = i; show(); },
  });

  function showKeys({ terms }) {
    const size = Number(now.size);
    powers.forEach((power, j) => {
      const block = Math.floor(j / size) + 1;
      const is = block < now.step ? "kept" : block === now.step ? "now" : "closed";
      paint(keys.cell(0, j), is, power);
      paint(keys.cell(1, j), is, values[j]);
      keys.cell(2, j).className = is;
      bars[j].text.textContent = terms[j] ?? "–";
      bars[j].bar.style.setProperty("--share", terms[j] ? number(terms[j]) : 0);
    });
  }

  function showMerge({ state, before, block, factors }) {
    const [m, l, o] = state;
    const columns = [before, block, state].map((part, c) => part && [part[0], c < 2 ? factors?.[c] : "", part[1], part[2]]);
    columns.forEach((column, c) => [0, 1, 2, 3].forEach((r) =>
      paint(merge.cell(r, c), r === 1 && c < 2 && column && column[1] !== "1" ? "now" : "", column ? column[r] ?? "" : "")));
    return { m, l, o };
  }

  function show() {
    const step = blocks[now.size][now.step];
    showKeys(step);
    const { l, o } = showMerge(step);
    out.textContent = `o / ℓ = ${o} / ${l} = ${step.out}`;
    say(explain(step));
  }

  function explain({ state, before, factors, out: result }) {
    if (!before) return "Nothing read yet: the empty state, m = −∞, ℓ = 0, o = 0.";
    const end = now.step === blocks[now.size].length - 1 ? ` All keys are read: ${result} is the output of ordinary attention.` : "";
    if (now.step === 1) return `The first block is the state.${end}`;
    return factors[0] === "1"
      ? `The maximum stays ${state[0]}: this block counts ${factors[1]} times.${end}`
      : `The maximum rises from ${before[0]} to ${state[0]}: what was summed up shrinks to ${factors[0]} times.${end}`;
  }

  stage.append(
    choice({
      legend: "Keys in a block", options: sizes, start: now.size,
      change: (size) => { now.size = size; now.step = 0; control.reset(blocks[size].length - 1); show(); },
    }),
    keys.node, merge.node, out, told, control.node,
  );
  show();
}
