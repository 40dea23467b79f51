// sphinx-book-theme 1.3.0 with pydata-sphinx-theme 0.17.1: only the first menu button opens the
// menu, and on a narrow screen that one is hidden (pydata-sphinx-theme issue 2451). Pass the tap on.
document.addEventListener("DOMContentLoaded", () => {
  const [first, ...others] = document.querySelectorAll("button.primary-toggle");
  for (const button of others) {
    button.addEventListener("click", (event) => {
      if (!matchMedia("(max-width: 991px)").matches) return;
      event.preventDefault();
      first.click();
    });
  }
});
