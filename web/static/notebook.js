// The student's notebook of a chapter: what stands before an exercise, and the file to hand in.
import { saved } from "./store.js";

const known = new Map();

/** path: such as "03-causal-mask/causal-mask.ipynb". */
export function load(path) {
  if (!known.has(path)) known.set(path, fetched(path));
  return known.get(path);
}

async function fetched(path) {
  const reply = await fetch(new URL(`../exercises/${path}`, import.meta.url));
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${reply.statusText}`);
  return new Notebook(path, await reply.json());
}

const source = (cell) => [].concat(cell.source).join("");
const mark = (cell) => cell.metadata.nbgrader ?? {};
const isAnswer = (cell) => cell.cell_type === "code" && mark(cell).solution;
const isTest = (cell) => mark(cell).grade && !mark(cell).solution;
const isTry = (cell) => (cell.metadata.tags ?? []).includes("raises-exception") && !isTest(cell);
const isHint = (cell) => source(cell).startsWith("# hint(");

class Notebook {
  constructor(path, content) {
    this.path = path;
    this.content = content;
    this.code = content.cells.filter((cell) => cell.cell_type === "code" && !isHint(cell));
  }

  /** {text, tries}: what to start from, and the code that tries it out. */
  exercise(name) {
    const begin = this.code.findIndex((cell) => mark(cell).grade_id === name);
    const rest = this.code.slice(begin + 1);
    const end = rest.findIndex(isAnswer);
    const mine = end < 0 ? rest : rest.slice(0, end);
    return { text: source(this.code[begin]), tries: mine.filter(isTry).map(source).join("\n\n") };
  }

  /** [name, source] of the cells above an exercise, the reader's answers in their places. */
  before(name, withTries) {
    const end = this.code.findIndex((cell) => mark(cell).grade_id === name);
    const cells = this.code.slice(0, end).filter((cell) => !isTest(cell) && (withTries || !isTry(cell)));
    return cells.map((cell) => [mark(cell).grade_id ?? "a cell above", answered(cell)]);
  }

  /** The notebook with the reader's answers, as a file's text. */
  filled() {
    const cells = this.content.cells.map((cell) => (isAnswer(cell) ? { ...cell, source: answered(cell) } : cell));
    return JSON.stringify({ ...this.content, cells }, null, 1) + "\n";
  }
}

const answered = (cell) => (isAnswer(cell) && saved(mark(cell).grade_id).text) || source(cell);

/** Let the browser save the notebook with the reader's answers, under the name to hand in. */
export async function download(path) {
  const notebook = await load(path);
  give(path.split("/").pop(), notebook.filled(), "application/x-ipynb+json");
}

/** Let the browser save a file of this name. */
export function give(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
