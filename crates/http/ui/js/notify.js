// Browser notifications about new approvals, if the person wants them.

import { oneLine } from './text/visible.js';

const KEY = 'agentd.notify';

export const notify = {
  possible: () => 'Notification' in window && isSecureContext,
  on: () => notify.possible() && localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted',

  /** Switches; asks the browser if it has to. @returns {Promise<boolean>} whether it is on now */
  async toggle() {
    if (notify.on()) {
      localStorage.removeItem(KEY);
      return false;
    }
    if ((await Notification.requestPermission()) !== 'granted') return false;
    localStorage.setItem(KEY, 'on');
    return true;
  },

  /**
   * Tells of approvals that open while the page is not in sight.
   * @param {import('./store.js').Store} store
   * @returns {() => void}
   */
  watch(store) {
    let known = new Set(store.approvals.map(({ approval }) => approval));
    let first = true;
    return store.subscribe((change) => {
      if (!change.approvals) return;
      const fresh = store.approvals.filter(({ approval }) => !known.has(approval));
      known = new Set(store.approvals.map(({ approval }) => approval));
      // What was open before the page is no news.
      if (first) {
        first = false;
        return;
      }
      if (!fresh.length || !document.hidden || !notify.on()) return;
      const title = fresh.length === 1 ? 'agentd asks' : `agentd asks ${fresh.length} questions`;
      const note = new Notification(title, { body: fresh.slice(0, 3).map((open) => oneLine(open.title, 120)).join('\n'), tag: 'agentd' });
      note.addEventListener('click', () => {
        window.focus();
        location.hash = `#/approvals/${fresh[0]?.approval ?? ''}`;
        note.close();
      });
    });
  },
};
