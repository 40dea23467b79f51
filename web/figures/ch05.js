// Splitting heads: every number keeps its name while it moves; then what each head attends to.
import { choice, el, number, paint, sentence, steps, table } from "./shared.js";

const MOVES = {
  split_heads: [
    "One row for each token, 6 numbers each: shape (4, 6). T2 is number 2 of “The”.",
    "A reshape cuts each row in two: (4, 2, 3), token, head, d_head.",
    "The first two axes change places: (2, 4, 3). Each head has its own slice of every token.",
  ],
  "reshape alone": [
    "One row for each token, 6 numbers each: shape (4, 6). T2 is number 2 of “The”.",
    "A reshape straight to (2, 4, 3) reads row by row and fills in the same order. Rows of another token are framed.",
  ],
};
const WIDTH = 2.05; // of a cell, in em, and its height
const HEIGHT = 1.9;

export default function draw(stage, { words, heads, width, ways }) {
  const size = width / heads;
  const names = Object.keys(ways);
  const now = { way: names[0], head: 0, step: 0 };
  const titles = Array.from({ length: heads }, (_, h) => el("span", { class: "play-over" }, `head ${h}`));
  const cells = words.flatMap((word, t) =>
    Array.from({ length: width }, (_, c) => el("span", { class: "play-cell", "data-token": t }, `${word[0]}${c}`)));
  const board = el("div", { class: "play-board", "aria-hidden": "true" },
    ...words.map((word, t) => el("span", { class: "play-side", style: `top:${HEIGHT * (t + 1)}em` }, word)), ...titles, ...cells);
  const grid = table({ label: "Weights", corner: "query", columns: words, rows: words });
  const over = el("p", { class: "play-product" });
  const { node: told, say } = sentence();
  const control = steps({ last: MOVES[now.way].length - 1, change: (i) => { now.step = i; move(); } });

  function put(cell, row, column, gap, foreign) {
    cell.style.transform = `translate(${4.6 + column * WIDTH + gap}em, ${HEIGHT * (row + 1)}em)`;
    cell.classList.toggle("foreign", foreign);
  }

  function move() {
    const { held, owners } = ways[now.way];
    const cut = now.step > 0 ? 1.2 : 0;
    held.forEach((rows, h) => rows.forEach((numbers, r) => numbers.forEach((n, c) => {
      const split = now.step > 0;
      const [row, column] = split ? [r, h * size + c] : [Math.floor(n / width), n % width];
      put(cells[n], row, column, split ? h * cut : 0, split && !owners[h][r].includes(r));
    })));
    titles.forEach((title, h) => {
      title.style.left = `${4.6 + h * (size * WIDTH + cut)}em`;
      title.classList.toggle("is-off", !isSplit());
      title.classList.toggle("is-picked", h === now.head);
    });
    say(MOVES[now.way][now.step]);
  }
  const isSplit = () => now.step === MOVES[now.way].length - 1;

  function attend() {
    const { weights, owners } = ways[now.way];
    const of = words.map((_, r) => words[owners[now.head][r][0]]);
    over.textContent = `Weights of head ${now.head}, under the causal mask`;
    weights[now.head].forEach((row, i) => row.forEach((weight, j) => {
      if (j > i) paint(grid.cell(i, j), "closed", "–", { spoken: "closed" });
      else paint(grid.cell(i, j), "weight", weight, { share: number(weight) });
    }));
    words.forEach((word, r) => {
      grid.name(r).textContent = of[r] === word ? word : `${word}: holds “${of[r]}”`;
      grid.name(r).className = of[r] === word ? "" : "foreign";
    });
  }

  function pickWay(way) {
    now.way = way;
    now.step = Math.min(now.step, MOVES[way].length - 1);
    control.reset(MOVES[way].length - 1, now.step);
    move();
    attend();
  }
  function pickHead(name) {
    now.head = Number(name.split(" ")[1]);
    move();
    attend();
    const foreign = ways[now.way].owners[now.head].findIndex(([owner], row) => owner > row);
    if (foreign >= 0) {
      const owner = words[ways[now.way].owners[now.head][foreign][0]];
      say(`Head ${now.head} is leaking: its row “${words[foreign]}” holds the numbers of “${owner}”, a later word.`);
    }
  }
  stage.append(
    choice({ legend: "Way to split", options: names, change: pickWay }), board, told, control.node,
    choice({ legend: "Show", options: titles.map((_, h) => `head ${h}`), change: pickHead }), over, grid.node,
  );
  pickWay(now.way);
}
