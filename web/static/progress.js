// The page that says which exercises pass in this browser.
import { download } from "./notebook.js";
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
const clear = document.getElementById("try-it-clear");
clear.hidden = false;
clear.addEventListener("click", () => {
  if (!confirm("Forget everything that you wrote and reached in this browser?")) return;
  forgetAll();
  show();
});
show();
