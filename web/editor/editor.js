// The editor of an exercise in the page: CodeMirror 6 with what Python needs.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

/**
 * An editor inside `parent`. Tab indents; Escape, then Tab, leaves it.
 *
 * label: its accessible name. describedBy: the id of the text that tells the keys.
 * keys: what a key does, such as {"Ctrl-Enter": run}. onChange: called with the new text.
 */
export function createEditor(parent, { text, label, describedBy, keys = {}, onChange = () => {} }) {
  const bindings = Object.entries(keys).map(([key, act]) => ({ key, run: () => (act(), true) }));
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      Prec.highest(keymap.of(bindings)),
      keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap]),
      history(),
      drawSelection(),
      lineNumbers(),
      python(),
      indentUnit.of("    "),
      EditorState.tabSize.of(4),
      indentOnInput(),
      bracketMatching(),
      syntaxHighlighting(classHighlighter), // colours are the style sheet's, light and dark
      EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy, tabindex: "0" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ],
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(insert) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert } });
    },
    focus: () => view.focus(),
  };
}
