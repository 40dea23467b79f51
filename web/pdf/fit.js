// What is wider than the paper is made smaller, until it fits; never cut.
() => {
  const width = document.querySelector("main").clientWidth;
  let worst = 1;
  for (const each of document.querySelectorAll('table, mjx-container[display="true"], div.math')) {
    const inner = Math.max(each.scrollWidth, each.getBoundingClientRect().width);
    if (inner > width + 1) {
      each.style.zoom = width / inner;
      worst = Math.min(worst, width / inner);
    }
  }
  return worst;
}
