// What a reader has written and reached, by exercise, in this browser:
// {text, tries, passed, points, hints}, each only where it says something.
const PREFIX = "no-peeking:";
const memory = new Map(); // where the browser stores nothing

export function saved(exercise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + exercise)) ?? memory.get(exercise) ?? {};
  } catch {
    return memory.get(exercise) ?? {};
  }
}

/** Change some of it; an undefined value is forgotten. */
export const save = (exercise, changes) => put(exercise, { ...saved(exercise), ...changes });

/** Keep this and nothing else of the exercise; false where that lasts only until the page is left. */
export function put(exercise, all) {
  memory.set(exercise, all);
  try {
    localStorage.setItem(PREFIX + exercise, JSON.stringify(all));
    return true;
  } catch {
    return false; // private browsing, or no room
  }
}

/** All that is kept: {exercise: {text, ...}}. */
export function savedAll() {
  const names = new Set(memory.keys());
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) names.add(key.slice(PREFIX.length));
  } catch {
    // nothing is stored
  }
  const all = [...names].sort().map((name) => [name, saved(name)]);
  return Object.fromEntries(all.filter(([, kept]) => Object.keys(kept).length));
}

export function forgetAll() {
  memory.clear();
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    }
  } catch {
    // nothing is stored
  }
}
