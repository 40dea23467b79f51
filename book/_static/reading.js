// A new page is laid out in parts (book.css). A jump inside it lands right when all heights are known.
const whole = () => document.documentElement.classList.remove("in-parts");
addEventListener("click", ({ target }) => target.closest("a[href*='#']") && whole(), { capture: true });

// What folds on a screen is open on paper, and closed again afterwards.
let opened = [];
addEventListener("beforeprint", () => {
  whole();
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
});

// What is wider than its box is reached by keyboard, too: the arrow keys scroll what has the focus.
// Looked at when it is near, so that a long page need not be measured before it can be read.
const kinds = "pre, div.math, .pst-scrollable-table-container, .cell_output .output";
const near = new IntersectionObserver((seen) => {
  const boxes = seen.filter((each) => each.isIntersecting).map(({ target }) => target);
  const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
  boxes.forEach((box, number) => {
    if (wide[number]) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
}, { rootMargin: "500px" });
const watch = () => {
  near.disconnect();
  for (const box of document.querySelectorAll(kinds)) near.observe(box);
};
addEventListener("load", (event) => {
  watch();
  event.stopImmediatePropagation(); // the theme would measure every box of the page, and at each change again
});
addEventListener("resize", watch);
