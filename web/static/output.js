// What running and checking has to say, as part of the page.
const TAGS = new Set("DIV P STRONG SMALL SPAN UL LI BR PRE TABLE CAPTION TBODY TR TD CODE".split(" "));
const STYLE = /url|expression|position|@|\\|</i;

export class Output {
  constructor(element) {
    this.element = element;
  }

  clear() {
    this.element.replaceChildren();
    this.printed = null;
  }

  /** kind: as session.py tells it, or "note" for a sentence of the page's own. */
  tell(kind, text) {
    if (kind === "text" || kind === "error") {
      if (this.printed?.className !== `try-it-${kind}`) {
        this.printed = this.add("pre", `try-it-${kind}`);
        this.printed.tabIndex = 0; // it may scroll
      }
      this.printed.append(text);
      return;
    }
    this.printed = null;
    if (kind === "html") this.add("div", "try-it-report").append(report(text));
    else if (kind === "image") {
      const image = this.add("img", "try-it-figure");
      image.src = `data:image/png;base64,${text}`;
      image.alt = "Figure drawn by the code above";
    } else this.add("p", `try-it-${kind}`).textContent = text;
  }

  add(tag, className) {
    const element = document.createElement(tag);
    element.className = className;
    this.element.append(element);
    return element;
  }
}

/** A report (autograde.picture) without whatever else could hide in its HTML. */
export function report(html) {
  const content = new DOMParser().parseFromString(html, "text/html").body;
  for (const element of [...content.querySelectorAll("*")]) {
    if (!TAGS.has(element.tagName)) element.replaceWith(element.textContent);
    for (const { name, value } of [...element.attributes]) {
      if (name !== "style" || STYLE.test(value)) element.removeAttribute(name);
    }
    if (element.tagName === "PRE") element.tabIndex = 0;
  }
  for (const paragraph of content.querySelectorAll("p")) linked(paragraph);
  const fragment = document.createDocumentFragment();
  fragment.append(...content.childNodes);
  return fragment;
}

/** "Read again. TITLE (book/PAGE.html#PLACE)": the title becomes a link. */
function linked(paragraph) {
  const text = paragraph.lastChild;
  const found = text?.nodeType === Node.TEXT_NODE && text.data.match(/^ (.+) \(book\/([\w-]+\.html#[\w-]+)\)$/);
  if (!found) return;
  const link = document.createElement("a");
  [link.textContent, link.href] = [found[1], found[2]];
  text.replaceWith(" ", link);
}
