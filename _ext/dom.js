// As much of a browser as MathJax needs to turn TeX into HTML: a tree of elements that can print itself.
const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const dashed = (name) => name.replace(/[A-Z]/g, (letter) => "-" + letter.toLowerCase());

class Text {
  nodeType = 3; nodeName = "#text"; parentNode = null;
  constructor(text) { this.nodeValue = text; }
  get outerHTML() { return escaped(this.nodeValue); }
  get textContent() { return this.nodeValue; }
  cloneNode() { return new Text(this.nodeValue); }
}

class Element {
  nodeType = 1; parentNode = null; childNodes = []; named = new Map(); styles = new Map();
  constructor(name) { this.nodeName = name; }
  style = new Proxy(this, {
    set: (node, name, value) => (node.styles.set(dashed(name), value), true),
    get: (node, name) => name === "cssText" ? node.cssText : node.styles.get(dashed(name)) ?? "",
  });
  classList = {
    add: (name) => this.setAttribute("class", `${this.getAttribute("class") ?? ""} ${name}`.trim()),
    contains: (name) => (this.getAttribute("class") ?? "").split(" ").includes(name),
  };
  sheet = { insertRule() {} };
  get cssText() { return [...this.styles].filter(([, value]) => value !== "").map(([name, value]) => `${name}: ${value};`).join(" "); }
  get attributes() { return [...this.named].map(([name, value]) => ({ name, value })); }
  get firstChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1) ?? null; }
  get nextSibling() { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null; }
  get textContent() { return this.childNodes.map((child) => child.textContent).join(""); }
  get innerHTML() { return this.childNodes.map((child) => child.outerHTML).join(""); }
  get outerHTML() {
    const style = this.cssText ? ` style="${escaped(this.cssText)}"` : "";
    const rest = [...this.named].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
    return `<${this.nodeName}${rest}${style}>${this.innerHTML}</${this.nodeName}>`;
  }
  setAttribute(name, value) { this.named.set(name, String(value)); }
  getAttribute(name) { return this.named.get(name) ?? null; }
  hasAttribute(name) { return this.named.has(name); }
  removeAttribute(name) { this.named.delete(name); }
  getElementsByTagName() { return []; }
  querySelectorAll() { return []; }
  appendChild(child) { return this.insertBefore(child, null); }
  insertBefore(child, next) {
    child.parentNode?.removeChild(child);
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, child);
    child.parentNode = this;
    return child;
  }
  removeChild(child) {
    this.childNodes = this.childNodes.filter((other) => other !== child);
    child.parentNode = null;
    return child;
  }
  replaceChild(fresh, old) { this.insertBefore(fresh, old); this.removeChild(old); return old; }
  cloneNode(deep) {
    const copy = new Element(this.nodeName);
    copy.named = new Map(this.named);
    for (const [name, value] of this.styles) copy.styles.set(name, value);
    if (deep) for (const child of this.childNodes) copy.appendChild(child.cloneNode(true));
    return copy;
  }
}

const root = new Element("html"), head = new Element("head"), body = new Element("body");
class Document { // on the prototype, for MathJax copies what is enumerable
  get readyState() { return "complete"; }
  get documentElement() { return root; }
  get head() { return head; }
  get body() { return body; }
  createElement(name) { return new Element(name); }
  createElementNS(_, name) { return new Element(name); }
  createTextNode(text) { return new Text(text); }
  getElementById() { return null; }
  getElementsByTagName() { return []; }
  querySelectorAll() { return []; }
  addEventListener() {}
}

globalThis.window = globalThis;
globalThis.navigator = { platform: "", appVersion: "", userAgent: "" };
globalThis.addEventListener = () => {};
globalThis.DOMParser = class { // MathJax puts what comes out, MathML, beside the formula as it is
  parseFromString(text) { return { body: { firstChild: { outerHTML: text, parentNode: null } } }; }
};
for (const name of ["NodeList", "HTMLCollection", "DocumentFragment", "HTMLElement", "XMLSerializer"])
  globalThis[name] = class {};
globalThis.Document = Document;
globalThis.document = new Document();
globalThis.MathJax = {
  startup: { typeset: false },
  options: { enableMenu: false, MenuClass: class { settings = {}; } },
  chtml: { fontURL: "../mathjax/output/chtml/fonts/woff-v2" }, // as seen from _static
  loader: { failed(error) { throw error; } },
};
