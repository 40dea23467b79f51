// One query of "I love dog": every number in the order in which it is computed.
import { choice, el, number, paint, sentence, steps, table } from "./shared.js";

const WEIGHTS = 4; // the row of the weights

export default function draw(stage, { tokens, rows, vectors, queries }) {
  let query = 0;
  let done = 0; // how many numbers stand in the table
  const query_is = el("p", { class: "play-product" });
  const grid = table({
    label: "From scores to output", rows, columns: [...tokens.map((token) => `“${token}”`), "sum"],
  });
  const { node: told, say } = sentence();
  const control = steps({
    last: queries[0].length,
    named: (i) => (i ? `number ${i} of ${queries[0].length}` : "before the first number"),
    change: (i) => { done = i; show(); },
  });

  function show() {
    const path = queries[query];
    const now = path[done - 1];
    query_is.textContent = `The query “${tokens[query]}” asks: q = (${vectors[query].join(", ")})`;
    rows.forEach((_, r) => [...tokens, ""].forEach((_, c) => paint(grid.cell(r, c), "")));
    vectors.forEach((vector, c) => paint(grid.cell(0, c), "", vector.join(" ")));
    for (const { row, column, shows } of path.slice(0, done)) {
      const isWeight = row === WEIGHTS && column < tokens.length;
      paint(grid.cell(row, column), isWeight ? "weight" : "", shows, {
        share: isWeight ? number(shows[0]) : undefined,
      });
    }
    if (!now) return say("Press Next for the first number.");
    for (const [row, column] of now.from) grid.cell(row, column).classList.add("used");
    grid.cell(now.row, now.column).classList.add("now");
    say(now.says);
  }

  stage.append(
    choice({ legend: "Query", options: tokens, change: (token) => { query = tokens.indexOf(token); show(); } }),
    query_is, grid.node, told, control.node,
  );
  show();
}
