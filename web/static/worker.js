// Python in a worker, so that the page stays alive whatever the reader's code does.
// A request is {method, args} of the session (session.py), its answer {ended} or {crashed}; on the
// way come {told: kind, text}, and {step, of, doing} while Python is loading.
importScripts("../pyodide/pyodide.js");

const PYTHON = ["session.py", "wasm.py", "warned.py"];
const silent = { messageCallback: () => {}, errorCallback: () => {} };
const step = (step, doing) => postMessage({ step, of: 3, doing });

async function start() {
  step(0, "Loading Python, 15 MB the first time");
  const files = Promise.all(["autograde.whl", ...PYTHON].map(download)); // meanwhile
  const python = await loadPyodide({
    indexURL: new URL("../pyodide/", location).href,
    packages: ["numpy"],
    env: { MPLBACKEND: "agg", HOME: "/home/pyodide" },
  });
  step(1, "Unpacking the course's checks");
  const [wheel, ...modules] = await files;
  python.unpackArchive(wheel, "wheel", { extractDir: "/course" });
  modules.forEach((text, i) => python.FS.writeFile(`/course/${PYTHON[i]}`, new Uint8Array(text)));
  step(2, "Reading the course's checks");
  python.globals.set("tell", (told, text) => postMessage({ told, text }));
  python.runPython(`
import json, sys
sys.path.insert(0, "/course")
from session import Session
session = Session(tell)
def perform(method, args):
    return json.dumps(getattr(session, method)(*json.loads(args)))
`);
  step(3, "Python is ready");
  return python;
}

async function download(name) {
  const reply = await fetch(new URL(name, location));
  if (!reply.ok) throw new Error(`${name}: ${reply.status} ${reply.statusText}`);
  return reply.arrayBuffer();
}

const ready = start();

onmessage = async ({ data: { method, args } }) => {
  try {
    const python = await ready;
    if (method === "run") {
      const source = args.flat().map(([, source]) => source);
      for (const each of source.filter((text) => text.includes("matplotlib"))) {
        await python.loadPackagesFromImports(each, silent).catch(() => {}); // of text that is no Python
      }
    }
    const perform = python.globals.get("perform");
    postMessage({ ended: JSON.parse(perform(method, JSON.stringify(args))) });
  } catch (error) {
    postMessage({ crashed: String(error.message ?? error).replace(/\. Build with .*/, "") });
  }
};
