// An exercise that can be solved in the page: editor, buttons, and what Python says.
import { createEditor } from "./editor.js";
import { download, load } from "./notebook.js";
import { Output } from "./output.js";
import { ask, loading, progress, start, stop } from "./python.js";
import { save, saved } from "./store.js";

const KEYS = "Ctrl+Enter runs, Shift+Enter checks. Tab indents; Escape, then Tab, leaves the editor.";
const style = document.createElement("link");
style.rel = "stylesheet";
style.href = new URL("runner.css", import.meta.url);
document.head.append(style);

/** Turn the place of an exercise (with its button) into an editor. */
export async function open(place) {
  start();
  const { notebook: path, exercise: name } = place.dataset;
  const notebook = await load(path);
  new Exercise(place, notebook, name).show();
}

class Exercise {
  constructor(place, notebook, name) {
    Object.assign(this, { place, notebook, name, path: place.dataset.notebook });
    this.given = notebook.exercise(name);
    this.below = place.nextElementSibling; // what the notebook says below the function
  }

  show() {
    const { name, given, below } = this;
    const keys = this.element("p", this.place, "try-it-keys", KEYS);
    keys.id = `try-it-keys-${name}`;
    const shared = {
      describedBy: keys.id,
      keys: { "Ctrl-Enter": () => this.run(), "Mod-Enter": () => this.run(), "Shift-Enter": () => this.check() },
    };
    this.place.querySelector("button").remove();
    this.answer = createEditor(this.element("div", this.place, "try-it-editor"), {
      ...shared,
      label: `Your ${name}, in Python`,
      text: saved(name).text ?? given.text,
      onChange: (text) => this.changed(text),
    });
    if (given.tries) {
      this.tries = createEditor(this.element("div", below, "try-it-editor"), {
        ...shared,
        label: `Code that tries your ${name} out`,
        text: saved(name).tries ?? given.tries,
        onChange: (tries) => save(name, { tries: tries === given.tries ? undefined : tries }),
      });
    }
    this.buttons();
    this.output = new Output(this.element("div", below, "try-it-output"));
    this.output.element.setAttribute("role", "status");
    this.output.element.setAttribute("aria-label", `What Python says of ${name}`);
    below.classList.add("try-it-open");
    this.answer.focus();
    this.loaded();
  }

  buttons() {
    const bar = this.element("div", this.below, "try-it-buttons");
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", this.name);
    const button = (text, act) => {
      const made = this.element("button", bar, "", text);
      made.type = "button";
      made.addEventListener("click", act);
      return made;
    };
    button("Check", () => this.check()).className = "try-it-main";
    button("Run", () => this.run());
    button("Hint", () => this.hint());
    this.stopper = button("Stop", () => stop());
    this.stopper.disabled = true;
    button("Reset", () => this.reset());
    button("Export notebook", () => download(this.path));
  }

  element(tag, parent, className, text = "") {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    parent.append(made);
    return made;
  }

  /** Keep what is written; what was checked before is another function now. */
  changed(text) {
    const kept = text === this.given.text ? undefined : text;
    save(this.name, { text: kept, passed: undefined, points: undefined });
  }

  /** Show how far Python's loading is, until it is ready; then this note, if there is one. */
  loaded(note) {
    const label = this.element("label", this.output.element, "try-it-loading");
    const words = this.element("span", label, "");
    const bar = this.element("progress", label, "");
    const show = () => {
      const { step, of, doing } = progress();
      [words.textContent, bar.max, bar.value] = [`${doing} `, of, step + 0.2];
      if (step < of && label.isConnected) return;
      loading.removeEventListener("step", show);
      if (!label.isConnected) return;
      this.output.clear();
      if (note) this.output.tell("note", note);
    };
    loading.addEventListener("step", show);
    show();
  }

  async asked(method, args) {
    this.output.clear();
    if (progress().step < progress().of) this.loaded("Running…");
    else this.output.tell("note", "Running…");
    this.stopper.disabled = false;
    let first = true;
    const result = await ask(method, args, (kind, text) => {
      if (first) this.output.clear();
      first = false;
      this.output.tell(kind, text);
    });
    if (first) this.output.clear();
    this.stopper.disabled = true;
    if (result.stopped) this.output.tell("note", "Stopped. What you wrote is kept; Python is starting again.");
    if (result.crashed) {
      const next = "What you wrote is kept; the next Run or Check starts Python again.";
      this.output.tell("note", `Python ended while it ran ${this.name}: ${result.crashed}. ${next}`);
    }
    return result;
  }

  async run() {
    const cells = [[this.name, this.answer.text]];
    if (this.tries) cells.push([`trying ${this.name}`, this.tries.text]);
    await this.asked("run", [this.notebook.before(this.name, true), cells]);
    if (!this.output.element.textContent && !this.output.element.querySelector("img")) {
      this.output.tell("note", "It ran, and printed nothing.");
    }
  }

  async check() {
    const cells = [[this.name, this.answer.text], ["check", `check(${this.name})`]];
    const { passed, points, of } = await this.asked("run", [this.notebook.before(this.name, false), cells]);
    if (passed === undefined) return;
    save(this.name, { passed, points });
    this.output.tell("points", `${points} of ${of} points${passed ? ": passed." : "."}`);
  }

  async hint() {
    const given = saved(this.name).hints ?? 0;
    await this.asked("hint", [this.name, given]);
    save(this.name, { hints: given + 1 });
  }

  reset() {
    this.answer.text = this.given.text;
    if (this.tries) this.tries.text = this.given.tries;
    this.output.clear();
    this.output.tell("note", "The code is as it was at first. Ctrl+Z in the editor brings yours back.");
  }
}
