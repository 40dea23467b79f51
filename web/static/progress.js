// The page that says which exercises pass in this browser.
import { differing, keep, read, written } from "./backup.js";
import { download, give } from "./notebook.js";
import { forgetAll, saved } from "./store.js";

const table = document.getElementById("try-it-progress");

function show() {
  for (const chapter of table.tBodies) {
    const sum = chapter.querySelector(".try-it-sum");
    if (!sum) continue; // a chapter that no browser can run
    let [reached, all] = [0, 0];
    for (const row of [...chapter.rows].slice(1)) {
      const { text, passed, points = 0 } = saved(row.dataset.exercise);
      const of = Number(row.cells[1].textContent);
      [reached, all] = [reached + points, all + of];
      const state = passed ? "✓ passed" : points ? `${points} of ${of} points` : text ? "begun" : "–";
      row.cells[2].textContent = state;
    }
    sum.textContent = `${reached} of ${all} points`;
  }
}

for (const button of table.querySelectorAll("button")) {
  button.hidden = false;
  button.addEventListener("click", () => download(button.closest("tbody").dataset.notebook));
}

const places = document.getElementById("try-it-all");
const told = document.getElementById("try-it-told");
const [toSave, toLoad, toForget] = places.querySelectorAll("button");
const file = places.querySelector("input");
places.hidden = false;

toSave.addEventListener("click", () => give("no-peeking-progress.json", written(), "application/json"));
toLoad.addEventListener("click", () => file.click());
file.addEventListener("change", () => {
  const [chosen] = file.files;
  file.value = ""; // so that the same file may be chosen again
  if (chosen) take(chosen);
});
toForget.addEventListener("click", () => {
  if (!confirm("Forget everything that you wrote and reached in this browser?")) return;
  forgetAll();
  tell("Everything is forgotten.");
  show();
});

/** Take over what a file holds; where other work would be lost, ask first. */
async function take(chosen) {
  const known = new Set([...table.querySelectorAll("[data-exercise]")].map((row) => row.dataset.exercise));
  let found;
  try {
    found = read(await chosen.text(), known);
  } catch (error) {
    tell(`Nothing was changed. ${chosen.name} cannot be loaded: ${error.message}.`);
    return;
  }
  const others = differing(found);
  if (others.length) {
    const question = `Here is other work than in ${chosen.name} for ${others.join(", ")}.`;
    const answer = await ask(question, ["Take the file’s", "Keep what is here, add the rest", "Change nothing"]);
    if (answer === 2) return tell("Nothing was changed.");
    if (answer === 1) for (const name of others) delete found[name];
  }
  const stays = keep(found);
  show();
  const count = Object.keys(found).length;
  const last = stays ? "" : " This browser stores nothing, so they are there until you leave the page.";
  tell(`Taken from ${chosen.name}: ${count} exercise${count === 1 ? "" : "s"}.${last}`);
}

function tell(text) {
  told.textContent = text;
}

/** Show a question with its answers, the harmless one last; resolves to the number of what is chosen. */
function ask(question, answers) {
  tell(question);
  const buttons = answers.map((text) => Object.assign(document.createElement("button"), { type: "button", textContent: text }));
  told.append(document.createElement("br"), ...buttons);
  buttons.at(-1).focus();
  return new Promise((done) => buttons.forEach((button, i) => button.addEventListener("click", () => done(i))));
}

show();
