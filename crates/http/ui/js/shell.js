// The frame around the views: navigation, connection, theme.

import { h, put, say } from './dom.js';
import { help } from './keyboard.js';
import { oneLine } from './text/visible.js';
import { theme } from './theme.js';

const PLACES = [
  { name: 'fleet', label: 'Fleet', scope: 'read' },
  { name: 'approvals', label: 'Approvals', scope: 'read' },
  { name: 'usage', label: 'Usage', scope: 'read' },
  { name: 'node', label: 'Node', scope: 'read', whole: true },
  { name: 'audit', label: 'Audit', scope: 'admin', whole: true },
];
/** A daemon that is away for this many attempts has probably stopped. */
const STOPPED = 4;

export class Shell {
  /** @param {{client: import('./client.js').Client, store: import('./store.js').Store, person: import('./types.js').Person, leave: () => void, retry: () => void}} options */
  constructor({ store, person, leave, retry }) {
    this.store = store;
    this.name = 'agentd';
    this.badge = h('span', { class: 'badge', hidden: true });
    // A token with labels cannot ask about the daemon as a whole.
    const limited = Object.keys(person.labels ?? {}).length > 0;
    const seen = PLACES.filter(({ scope, whole }) => (person.scopes === null || person.scopes.includes(scope)) && !(whole && limited));
    this.links = new Map(seen.map(({ name, label }) => [name, h('a', { href: `#/${name}` }, label, name === 'approvals' && this.badge)]));
    this.node = h('span', { class: 'node-name' });
    this.dot = h('span', { class: 'dot', 'aria-hidden': 'true' });
    this.word = h('span');
    this.pill = h('span', { class: 'connection', role: 'status' }, this.dot, this.word);
    this.banner = h('div', { class: 'banner', hidden: true });
    this.theme = h('button', { type: 'button', class: 'icon', on: { click: () => this.switchTheme() } });
    this.element = h('div', { class: 'shell' },
      h('header', { class: 'top' },
        h('a', { class: 'brand', href: '#/fleet' }, h('span', { class: 'logo', 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), 'agentd', this.node),
        h('nav', { 'aria-label': 'Views' }, [...this.links.values()]),
        h('div', { class: 'tools' }, this.pill, this.theme,
          h('button', { type: 'button', class: 'icon', title: 'Keys (?)', 'aria-label': 'Show the keys', on: { click: () => void help() } }, '?'),
          h('button', { type: 'button', class: 'quiet', title: `Sign out${person.name ? ` ${person.name}` : ''}`, on: { click: leave } }, 'Sign out'))),
      this.banner);
    this.retry = retry;
    this.showTheme();
    this.unsubscribe = store.subscribe((change) => this.update(change));
    this.timer = window.setInterval(() => this.showConnection(), 500);
    this.showConnection();
  }

  /** @param {{node: string, version: string, principal: string}} me */
  daemon({ node, version, principal }) {
    say(this.node, oneLine(node, 40));
    this.node.title = `agentd ${version} on ${oneLine(node, 80)}; you are ${oneLine(principal, 80)}`;
  }

  dispose() {
    this.unsubscribe();
    clearInterval(this.timer);
  }

  switchTheme() {
    theme.next();
    this.showTheme();
  }

  showTheme() {
    const now = theme.now();
    say(this.theme, { auto: '◐', light: '☀', dark: '☾' }[now] ?? '◐');
    this.theme.title = `Colours: ${now === 'auto' ? 'as the system' : now} (T)`;
    this.theme.setAttribute('aria-label', `Colours: ${now}`);
  }

  /** @param {string} name */
  current(name) {
    for (const [own, link] of this.links) {
      if (own === name || (name === 'session' && own === 'fleet')) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  /** @param {string} title */
  title(title) {
    this.name = title;
    const open = this.store.approvals.length;
    document.title = `${open ? `(${open}) ` : ''}${title} · agentd`;
  }

  /** @param {import('./store.js').Change} change */
  update(change) {
    if (change.approvals) {
      const open = this.store.approvals.length;
      this.badge.hidden = open === 0;
      say(this.badge, String(open));
      this.badge.setAttribute('aria-label', `${open} open`);
      this.title(this.name);
    }
    if (change.connection) this.showConnection();
  }

  showConnection() {
    const { state, retryAt = 0, attempts = 0, why = '' } = this.store.connection;
    const left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    const away = attempts > 0 && state !== 'live';
    const kind = state === 'live' ? 'live' : away ? 'away' : 'connecting';
    this.pill.dataset.kind = kind;
    const words = { live: 'live', connecting: 'connecting…', away: state === 'waiting' && left ? `reconnecting in ${left}s` : 'reconnecting…' };
    say(this.word, words[kind]);
    this.pill.title = away ? why : 'The connection to agentd';
    // Right after a restart a banner would only flash.
    const show = away && attempts >= 2;
    if (show === this.banner.hidden) {
      this.banner.hidden = !show;
      if (show) {
        this.banner.dataset.stage = '';
      }
    }
    if (!show) return;
    const stage = attempts >= STOPPED ? 'stopped' : 'broken';
    if (this.banner.dataset.stage === stage) return;
    this.banner.dataset.stage = stage;
    const again = h('button', { type: 'button', on: { click: this.retry } }, 'Try now');
    put(this.banner, stage === 'stopped'
      ? ['agentd does not answer; what you see is old. On its machine: ', h('code', null, 'agentctl daemon status'), ' says why, ', h('code', null, 'agentctl daemon start'), ' starts it. This page goes on by itself. ', again]
      : [`${why} Reconnecting; nothing will be missed. `, again]);
  }
}
