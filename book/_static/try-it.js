// Opens an exercise when its button is pressed; until then a page loads nothing for it.
(() => {
  const site = new URL("../web/", document.currentScript.src);

  function name(button, text, exercise) {
    button.textContent = text;
    button.setAttribute("aria-label", `${text}: ${exercise}`);
  }

  async function open(place, button) {
    button.disabled = true;
    name(button, "Loading…", place.dataset.exercise);
    try {
      const { open } = await import(new URL("runner.js", site));
      await open(place);
    } catch (error) {
      button.disabled = false;
      name(button, "Try again", place.dataset.exercise);
      const why = document.createElement("p");
      why.setAttribute("role", "alert");
      why.textContent =
        location.protocol === "file:"
          ? "A browser runs Python only in pages that come from a server: `make serve` is one."
          : `The exercise could not be opened (${error.message}).`;
      place.append(why);
    }
  }

  function state(name) {
    try {
      return JSON.parse(localStorage.getItem(`no-peeking:${name}`)) ?? {};
    } catch {
      return {};
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll(".try-it")) {
      const button = place.querySelector("button");
      const { exercise } = place.dataset;
      const { text, passed } = state(exercise);
      if (text) name(button, passed ? "✓ Passed, open it again" : "Go on", exercise);
      button.hidden = false;
      button.addEventListener("click", () => open(place, button));
    }
    if (document.getElementById("try-it-progress")) import(new URL("progress.js", site));
  });
})();
