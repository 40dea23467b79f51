// What folds on a screen is open on paper, and closed again afterwards.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
});

// What is wider than its box is reached by keyboard, too: the arrow keys scroll what has the focus.
// Looked at when it is near, so that a long page need not be measured before it can be read.
const boxes = "pre, div.math, .pst-scrollable-table-container, .cell_output .output";
const near = new IntersectionObserver((seen) => {
  const wide = seen.map(({ target }) => target.scrollWidth > target.clientWidth);
  seen.forEach(({ target }, number) => {
    if (wide[number]) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  });
}, { rootMargin: "500px" });
const watch = () => {
  near.disconnect();
  for (const box of document.querySelectorAll(boxes)) near.observe(box);
};
addEventListener("load", watch);
addEventListener("resize", watch);
