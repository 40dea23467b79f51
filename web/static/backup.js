// All that is kept in this browser as one file, and back.
import { put, saved, savedAll } from "./store.js";

const COURSE = "No Peeking";
const KINDS = { text: "string", tries: "string", passed: "boolean", points: "number", hints: "number" };

/** The file's text. */
export const written = () => JSON.stringify({ course: COURSE, exercises: savedAll() }, null, 1) + "\n";

/**
 * What such a file holds, as {exercise: {text, ...}}, exercises that `known` lacks left out.
 * Throws an Error whose message says what is wrong with the file.
 */
export function read(text, known) {
  const content = parsed(text);
  if (content?.nbformat) throw new Error("it is a notebook, for Jupyter; here goes what Save everything wrote");
  if (content?.course !== COURSE || !isMap(content.exercises)) throw new Error("Save everything did not write it");
  for (const [name, kept] of Object.entries(content.exercises)) {
    const wrong = isMap(kept) && Object.keys(kept).find((key) => typeof kept[key] !== KINDS[key]);
    if (wrong !== undefined) throw new Error(`what it says of ${name} cannot be read${wrong ? `: ${wrong}` : ""}`);
  }
  return Object.fromEntries(Object.entries(content.exercises).filter(([name]) => known.has(name)));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not the JSON that Save everything writes, or only a part of it");
  }
}

const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The exercises for which something else is kept here. */
export const differing = (found) =>
  Object.keys(found).filter((name) => {
    const here = saved(name);
    return Object.keys(here).length && Object.keys(KINDS).some((key) => here[key] !== found[name][key]);
  });

/** Keep what was found; false where that lasts only until the page is left. */
export const keep = (found) => Object.entries(found).map(([name, kept]) => put(name, kept)).every(Boolean);
