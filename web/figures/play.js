// Begins each picture shortly before it comes into view, and loads only what that picture needs.

async function begin(figure) {
  try {
    const { default: draw } = await import(`./${figure.dataset.play}.js`);
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    draw(figure.querySelector(".play-stage"), data);
    figure.classList.add("is-live");
  } catch (error) {
    figure.classList.add("play-failed"); // the table shows instead
    console.error(error);
  }
}

const watch = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      begin(target);
    }
  },
  { rootMargin: "800px 0px" },
);
for (const figure of document.querySelectorAll(".play")) watch.observe(figure);
