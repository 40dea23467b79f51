// Python for the page: one worker, started when it is first needed and anew when it was stopped.
let worker = null;
let current = null; // the request that is being answered: {tell, done}
let clock = 0; // rings when a call neither returns nor can be interrupted
let last = Promise.resolve();
let latest = { step: 0, of: 3, doing: "Loading Python" };
const GRACE = 20; // seconds beyond a call's own limit, which mostly ends it

export const loading = new EventTarget(); // "step": {step, of, doing}
export const progress = () => latest;

export function start() {
  if (worker) return;
  worker = new Worker(new URL("worker.js", import.meta.url));
  worker.onmessage = ({ data }) => {
    if ("step" in data) {
      latest = data;
      loading.dispatchEvent(new Event("step"));
    } else if (data.told === "limit") watch(data.text);
    else if (data.told) current?.tell(data.told, data.text);
    else if (data.crashed) stop({ crashed: data.crashed });
    else end(data.ended);
  };
  worker.onerror = (event) => stop({ crashed: event.message ?? "its files could not be loaded" });
}

/** Ask the session (session.py); resolves to what it returns, or {stopped} or {crashed: why}. */
export function ask(method, args, tell) {
  const answer = last.then(
    () =>
      new Promise((done) => {
        start();
        current = { tell, done };
        worker.postMessage({ method, args });
      }),
  );
  last = answer;
  return answer;
}

/** End Python at once, whatever it does; the next request starts it again. */
export function stop(result = { stopped: true }) {
  worker?.terminate();
  worker = null;
  latest = { step: 0, of: 3, doing: "Starting Python again" };
  end(result);
  if (result.stopped) start(); // it was well: have it ready for the next try
}

function end(result) {
  clearTimeout(clock);
  const done = current?.done;
  current = null;
  done?.(result);
}

/** A call may take so many seconds; 0: it has ended. */
function watch(seconds) {
  clearTimeout(clock);
  if (!seconds) return;
  const why = `a call did not return within ${seconds} s, and could not be interrupted`;
  clock = setTimeout(() => stop({ crashed: why }), (seconds + GRACE) * 1000);
}
