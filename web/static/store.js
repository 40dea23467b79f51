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
export function save(exercise, changes) {
  const all = { ...saved(exercise), ...changes };
  memory.set(exercise, all);
  try {
    localStorage.setItem(PREFIX + exercise, JSON.stringify(all));
  } catch {
    // private browsing, or no room: it is kept until the page is left
  }
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
