// What is done to all selected sessions: pause, resume, cancel.

import { h, say } from '../../dom.js';
import { short } from '../../format.js';
import { oneLine } from '../../text/visible.js';
import { agentctl, confirm, copies, curl, fail, toast } from '../../ui.js';

/** Requests at the same time. */
const AT_ONCE = 6;

/** @type {Record<string, {verb: string, done: string, path: (id: string) => string, says: string, kind: string, command: string}>} */
const ACTS = {
  pause: { verb: 'Pause', done: 'Paused', path: (id) => `/sessions/${id}/pause`, says: 'No new model call starts until you resume them. Running calls finish.', kind: 'primary', command: 'pause' },
  resume: { verb: 'Resume', done: 'Resumed', path: (id) => `/sessions/${id}/resume`, says: 'Paused sessions continue; waiting ones retry at once; faulted ones start again.', kind: 'primary', command: 'resume' },
  cancel: { verb: 'Cancel', done: 'Cancelled', path: (id) => `/sessions/${id}/turns/cancel`, says: 'Their running turns end now, and so do their commands. The sessions stay open.', kind: 'danger', command: 'cancel' },
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
      command: agentctl(act.command, ...ids.map(short)),
      curl: ids.map((id) => curl('POST', act.path(id), {})).join('\n'),
    }));
    const body = [h('p', null, act.says), h('ul', { class: 'names' }, names, ids.length > 5 && h('li', { class: 'dim' }, `and ${ids.length - 5} more`)), h('p', { class: 'dim' }, 'The same in a terminal: ', same)];
    const title = name === 'cancel' ? `Cancel the turns of ${what}?` : `${act.verb} ${what}?`;
    if (!(await confirm({ title, body, action: `${act.verb} ${what}`, kind: act.kind }))) return;
    let done = 0;
    /** @type {unknown} */
    let first = null;
    let failed = 0;
    const queue = [...ids];
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let id = queue.shift(); id; id = queue.shift()) {
        try {
          await this.ctx.client.post(act.path(id));
          done += 1;
          this.table.selected.delete(id);
        } catch (error) {
          failed += 1;
          first ??= error;
        }
        this.ctx.store.mark(id);
      }
    }));
    if (done) toast(`${act.done} ${done} of ${what}.`, { kind: 'good' });
    if (failed) fail(first, `${failed} of ${what} refused; the first says`);
    this.update();
    this.table.paint();
  }
}
