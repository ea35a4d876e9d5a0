// Light, dark, or as the system says.

const KEY = 'agentd.theme';
const ORDER = ['auto', 'light', 'dark'];

const stored = () => {
  const theme = localStorage.getItem(KEY);
  return theme && ORDER.includes(theme) ? theme : 'auto';
};

/** @param {string} theme */
function apply(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export const theme = {
  start: () => apply(stored()),
  now: stored,
  /** The next one, which it returns. */
  next() {
    const next = /** @type {string} */ (ORDER[(ORDER.indexOf(stored()) + 1) % ORDER.length]);
    localStorage.setItem(KEY, next);
    apply(next);
    return next;
  },
};
