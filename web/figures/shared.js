// What the pictures share: elements, controls, tables. Nothing here computes: all numbers
// come from the page, where Python has written them.

/** el("p", { class: "x", onclick: f }, "text", child): an HTML element. */
export const el = (tag, given, ...inside) => make(document.createElement(tag), given, inside);

/** The same for SVG. */
export const svg = (tag, given, ...inside) =>
  make(document.createElementNS("http://www.w3.org/2000/svg", tag), given, inside);

function make(node, given = {}, inside = []) {
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...inside.filter((child) => child !== undefined));
  return node;
}

/** The sentence below a picture; screen readers hear it when it changes. */
export function sentence() {
  const node = el("p", { class: "play-say", role: "status" });
  return {
    node,
    say: (text) => {
      if (node.textContent !== text) node.textContent = text;
    },
  };
}

/** Back, a slider and Next, from 0 to last. `named(i)` is what a screen reader calls step i. */
export function steps({ last, change, start = 0, named = (i) => `step ${i} of ${last}` }) {
  let now = start;
  const range = el("input", {
    type: "range", min: 0, max: last, "aria-label": "Step", oninput: () => go(Number(range.value)),
  });
  const back = el("button", { type: "button", onclick: () => go(now - 1) }, "Back");
  const next = el("button", { type: "button", onclick: () => go(now + 1) }, "Next");
  function show() {
    range.value = now;
    range.setAttribute("aria-valuetext", named(now));
    back.setAttribute("aria-disabled", now === 0); // not disabled: the focus stays
    next.setAttribute("aria-disabled", now === last);
  }
  function go(to) {
    if (to < 0 || to > last) return;
    now = to;
    show();
    change(now);
  }
  function reset(newLast, to = 0) {
    last = newLast;
    range.max = last;
    now = Math.min(to, last);
    show();
  }
  show();
  return { node: el("div", { class: "play-steps" }, back, range, next), go, reset };
}

let choices = 0;

/** Radio buttons. options: text of each. change(text). */
export function choice({ legend, options, change, start = options[0] }) {
  const name = `play-choice-${(choices += 1)}`;
  const labels = options.map((option) =>
    el("label", {},
      el("input", {
        type: "radio", name, value: option, checked: option === start ? "" : undefined,
        onchange: () => change(option),
      }),
      el("span", {}, option),
    ),
  );
  return el("fieldset", { class: "play-choice" }, el("legend", {}, legend), ...labels);
}

/** A slider over `values`, texts. change(index). */
export function slider({ label, values, change, start = 0 }) {
  const output = el("output", { "aria-hidden": "true" });
  const range = el("input", {
    type: "range", min: 0, "aria-label": label, oninput: () => set(Number(range.value), true),
  });
  function set(index, tell) {
    range.value = index;
    range.setAttribute("aria-valuetext", values[index]);
    output.textContent = values[index];
    if (tell) change(index);
  }
  function reset(newValues, index) {
    values = newValues;
    range.max = values.length - 1;
    set(index, false);
  }
  reset(values, start);
  const node = el("label", { class: "play-slider" }, el("span", {}, label), range, output);
  return { node, set, reset };
}

/** A table with named columns and rows: `cell(row, column)` is a cell, to `paint`.
 *  onrow(i): the rows get buttons, and follow a mouse. */
export function table({ label, corner = "", columns, rows, onrow, buttons = rows.length }) {
  const head = el("tr", {}, el("td", {}, corner), ...columns.map((c) => el("th", { scope: "col" }, c)));
  const lines = rows.map((name, i) => {
    const picks = onrow && i < buttons;
    const title = picks
      ? el("button", { type: "button", "aria-pressed": "false", onclick: () => onrow(i) }, name)
      : name;
    const line = el("tr", {}, el("th", { scope: "row" }, title), ...columns.map(() => el("td")));
    if (picks) {
      line.addEventListener("click", () => onrow(i));
      line.addEventListener("pointerenter", (e) => e.pointerType === "mouse" && onrow(i));
    }
    return line;
  });
  return {
    node: el("table", { class: "play-table", "aria-label": label }, el("thead", {}, head), el("tbody", {}, ...lines)),
    cell: (row, column) => lines[row].children[column + 1],
    pick: (row) => lines.forEach((line, i) => {
      line.classList.toggle("is-picked", i === row);
      line.querySelector("button")?.setAttribute("aria-pressed", i === row);
    }),
    name: (row) => lines[row].firstChild,
  };
}

/** Show a text and a state in a cell: open, closed, new, again, kept, weight, now, bad.
 *  spoken: what a screen reader says instead of a mark. share: from 0 to 1, how blue. */
export function paint(cell, state, text = "", { spoken, share } = {}) {
  cell.className = state;
  cell.textContent = "";
  if (spoken) {
    cell.append(el("span", { "aria-hidden": "true" }, text), el("span", { class: "play-hidden" }, spoken));
  } else if (Array.isArray(text)) {
    cell.append(...text.map((line) => el("span", { class: "play-line" }, line)));
  } else {
    cell.append(text);
  }
  if (share === undefined) cell.style.removeProperty("--share");
  else cell.style.setProperty("--share", share);
}

/** A number that Python wrote as a text, for drawing. */
export const number = (text) =>
  text.endsWith("∞") ? (text.startsWith("−") ? -Infinity : Infinity) : Number(text.replaceAll("−", "-"));
