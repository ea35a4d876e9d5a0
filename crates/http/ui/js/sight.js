// How a hidden tab saves connections.

/** A tab that is hidden this long gives its connection back, and then reads approvals this often. */
const HIDDEN = 60_000;
const POLL = 20_000;

/**
 * A hidden tab gives its connection back after a while, as a browser has only six for all its tabs. It still counts the open
 * questions, and continues without a gap when it is visible again.
 * @param {import('./store.js').Store} store
 * @returns {() => void}
 */
export function restWhenHidden(store) {
  let [timer, poll] = [0, 0];
  let resting = false;
  const rest = () => {
    // The stream of a session on display is not ours to end.
    if (!store.fleet) return;
    store.stop();
    resting = true;
    poll = window.setInterval(() => store.readApprovals(), POLL);
  };
  const sight = () => {
    clearTimeout(timer);
    clearInterval(poll);
    if (document.hidden) timer = window.setTimeout(rest, HIDDEN);
    else if (resting) store.start();
    if (!document.hidden) resting = false;
  };
  document.addEventListener('visibilitychange', sight);
  return () => {
    document.removeEventListener('visibilitychange', sight);
    clearTimeout(timer);
    clearInterval(poll);
  };
}
