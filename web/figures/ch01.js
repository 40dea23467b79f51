// The chain rule: pick a word, see what it is predicted from, what it adds to the product.
import { choice, el, sentence, steps } from "./shared.js";

const WAYS = { "only the past": "honest", "the whole text": "peeking" };

export default function draw(stage, { words, vocabulary, honest, peeking }) {
  const ways = { honest, peeking };
  let at = 0;
  let way = "honest";
  const begin = el("span", { class: "play-chip open" }, "<s>");
  const chips = words.map((word, i) =>
    el("button", { type: "button", onclick: () => control.go(i) }, el("span", {}, word)));
  const bars = vocabulary.map((word) => {
    const bar = el("span", { class: "play-bar" });
    const p = el("span", { class: "play-number" });
    const line = el("span", {}, bar, " ", p);
    return { bar, p, node: el("li", {}, el("span", { class: "play-word" }, word), line) };
  });
  const product = el("p", { class: "play-product" });
  const { node: told, say } = sentence();
  const control = steps({
    last: words.length - 1,
    named: (i) => `word ${i + 1}, ${words[i]}`,
    change: (i) => { at = i; show(); },
  });

  function showChips() {
    chips.forEach((chip, i) => {
      const read = way === "peeking" || i < at;
      const state = i === at ? `asked${read ? " leak" : ""}` : read ? "open" : "closed";
      chip.className = `play-chip ${state}`;
      const spoken = i === at ? `to predict${read ? " and read" : ""}` : read ? "read" : "hidden";
      chip.setAttribute("aria-label", `${words[i]}, ${spoken}`);
      chip.setAttribute("aria-pressed", i === at);
    });
  }

  function showBars({ probs }) {
    bars.forEach(({ bar, p, node }, i) => {
      const [over, under = 1] = probs[i].split("/");
      bar.style.setProperty("--share", over / under);
      p.textContent = probs[i];
      node.classList.toggle("is-next", vocabulary[i] === words[at]);
    });
  }

  function showProduct(now) {
    const factors = ways[way].slice(0, at + 1).map((step) => step.p);
    const last = factors.pop();
    product.replaceChildren(
      `p = ${factors.map((p) => `${p} · `).join("")}`, el("strong", {}, last),
      at ? ` = ${now.product}` : "", `,   log p = ${now.log}`,
    );
  }

  function show() {
    const now = ways[way][at];
    showChips();
    showBars(now);
    showProduct(now);
    const possible = now.probs.filter((p) => p !== "0").length;
    const before = ["<s>", ...words.slice(0, at)].join(" ");
    if (way === "peeking") {
      say(`The model reads “${words[at]}” itself and repeats it: probability 1. The loss is 0, and nothing was predicted.`);
    } else {
      say(`After “${before}” ${possible === 1 ? "one word" : `${possible} words`} may come: “${words[at]}” has ${now.p}. Product so far: ${now.product}.`);
    }
  }

  stage.append(
    choice({ legend: "It reads", options: Object.keys(WAYS), change: (name) => { way = WAYS[name]; show(); } }),
    el("div", { class: "play-chips" }, begin, ...chips),
    el("p", { class: "play-key" },
      el("span", { class: "play-chip open" }), " read ", el("span", { class: "play-chip asked" }), " to predict ",
      el("span", { class: "play-chip closed" }), " hidden"),
    el("ul", { class: "play-bars", "aria-label": "Probability of each word" }, ...bars.map((bar) => bar.node)),
    product, told, control.node,
  );
  show();
}
