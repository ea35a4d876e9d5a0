// What is done to all selected sessions: pause, resume, cancel.

import { h, say } from '../../dom.js';
import { short } from '../../format.js';
import { oneLine } from '../../text/visible.js';
import { agentctl, confirm, copies, curl, fail, toast } from '../../ui.js';

/** Sessions per request; the daemon takes at most 2,000. */
const PER_REQUEST = 1000;

/** @type {Record<string, {verb: string, done: string, says: string, kind: string}>} */
const ACTS = {
  pause: { verb: 'Pause', done: 'Paused', says: 'No new model call starts until you resume them. Running calls finish.', kind: 'primary' },
  resume: { verb: 'Resume', done: 'Resumed', says: 'Paused sessions continue; waiting ones retry at once; faulted ones start again.', kind: 'primary' },
  cancel: { verb: 'Cancel', done: 'Cancelled', says: 'Their running turns end now, and so do their commands. The sessions stay open.', kind: 'danger' },
};

export class Bulk {
  /** @param {{ctx: import('../../types.js').Context, table: import('./table.js').Table}} options */
  constructor({ ctx, table }) {
    this.ctx = ctx;
    this.table = table;
    this.count = h('strong');
    this.element = h('div', { class: 'bulk', role: 'region', 'aria-label': 'Selected sessions', hidden: true }, this.count,
      Object.entries(ACTS).map(([name, { verb, kind }]) => h('button', { type: 'button', class: kind === 'danger' ? 'danger' : '', on: { click: () => void this.act(name) } }, verb)),
      h('button', { type: 'button', class: 'quiet', on: { click: () => this.clear() } }, 'Clear'));
  }

  clear() {
    this.table.selected.clear();
    this.update();
    this.table.paint();
  }

  update() {
    const n = this.table.selected.size;
    this.element.hidden = n === 0;
    say(this.count, `${n} selected`);
  }

  /** @param {string} name */
  async act(name) {
    const act = ACTS[name];
    const ids = [...this.table.selected];
    if (!act || !ids.length) return;
    const what = ids.length === 1 ? '1 session' : `${ids.length} sessions`;
    const names = ids.slice(0, 5).map((id) => h('li', null, oneLine(this.ctx.store.rows.get(id)?.name ?? '', 80) || short(id)));
    const same = copies(() => ({
      command: agentctl(name, ...ids.map(short)),
      curl: curl('POST', '/bulk', { action: name, sessions: ids }),
    }));
    const body = [h('p', null, act.says), h('ul', { class: 'names' }, names, ids.length > 5 && h('li', { class: 'dim' }, `and ${ids.length - 5} more`)), h('p', { class: 'dim' }, 'The same in a terminal: ', same)];
    const title = name === 'cancel' ? `Cancel the turns of ${what}?` : `${act.verb} ${what}?`;
    if (!(await confirm({ title, body, action: `${act.verb} ${what}`, kind: act.kind }))) return;
    let done = 0;
    /** @type {unknown} */
    let first = null;
    let failed = 0;
    for (let at = 0; at < ids.length; at += PER_REQUEST) {
      const sessions = ids.slice(at, at + PER_REQUEST);
      try {
        /** @type {{outcomes: import('../../types.js').BulkOutcome[]}} */
        const { outcomes } = await this.ctx.client.post('/bulk', { action: name, sessions });
        for (const { session, fault } of outcomes) {
          if (fault) {
            failed += 1;
            first ??= fault;
          } else {
            done += 1;
            this.table.selected.delete(session);
          }
        }
      } catch (error) {
        failed += sessions.length;
        first ??= error;
      }
      for (const id of sessions) this.ctx.store.mark(id);
    }
    if (done) toast(`${act.done} ${done} of ${what}.`, { kind: 'good' });
    if (failed) fail(first, `${failed} of ${what} refused; the first says`);
    this.update();
    this.table.paint();
  }
}
