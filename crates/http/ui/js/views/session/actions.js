// What a person can do with a session: each is one call, with a question first where it is hard to take back.

import { h } from '../../dom.js';
import { visibleText } from '../../text/visible.js';
import { ask, confirm, dialog, fail, toast } from '../../ui.js';

const MODES = ['default', 'accept-edits', 'plan', 'yolo'];

export class Actions {
  /**
   * @param {import('../../types.js').Context} ctx
   * @param {import('./log.js').Log} log
   */
  constructor(ctx, log) {
    this.ctx = ctx;
    this.log = log;
  }

  /**
   * @param {string} what
   * @param {() => Promise<any>} run
   * @param {string} [done]
   */
  async run(what, run, done = '') {
    try {
      const answer = await run();
      if (done) toast(done, { kind: 'good' });
      return answer ?? true;
    } catch (error) {
      fail(error, what);
      return null;
    }
  }

  get path() {
    return this.log.path;
  }

  /** @param {string} verb @param {string} done */
  simple(verb, done) {
    return this.run('It did not work', () => this.ctx.client.post(`${this.path}/${verb}`), done);
  }

  pause() {
    return this.run('The session was not paused', () => this.ctx.client.post(`${this.path}/pause`));
  }

  resume() {
    return this.run('The session was not resumed', () => this.ctx.client.post(`${this.path}/resume`));
  }

  /** Pause or resume, as it fits. */
  toggle() {
    const { paused, state } = this.log.summary ?? {};
    return paused || state === 'paused' ? this.resume() : this.pause();
  }

  async cancel() {
    const turn = this.log.summary?.turn;
    const sure = await confirm({
      title: 'Cancel the turn?',
      body: h('p', null, 'Commands that run get TERM, and KILL half a second later. The session stays open.'),
      action: 'Cancel the turn',
      kind: 'danger',
    });
    if (sure) await this.run('The turn was not cancelled', () => this.ctx.client.post(`${this.path}/turns/cancel`, turn ? { expect_turn: turn } : {}), 'The turn is cancelled');
  }

  async rename() {
    const title = await ask({ title: 'Rename the session', label: 'Name', value: this.log.summary?.name ?? '', action: 'Rename', required: true });
    if (title) await this.update({ title });
  }

  /** @param {any} change */
  update(change) {
    return this.run('The session was not changed', () => this.ctx.client.patch(this.path, change), 'Changed');
  }

  async mode() {
    const now = this.log.summary?.mode;
    const select = h('select', { 'aria-label': 'Mode' }, MODES.map((mode) => h('option', { value: mode, selected: mode === now }, mode)));
    const body = [select, h('p', { class: 'dim' }, 'default: reads run, writes and commands ask. accept-edits: writes in the working directory run as well. plan: only reads run. yolo: everything runs that no rule denies.')];
    const sure = await dialog({ title: 'Change the mode', body, actions: [{ label: 'Cancel', value: '' }, { label: 'Change', value: 'yes', kind: 'primary' }], focus: select });
    if (sure === 'yes' && select.value !== now) await this.update({ mode: select.value });
  }

  async model() {
    const models = await this.run('The models could not be read', () => this.ctx.client.get('/models'));
    if (!models) return;
    const now = this.log.summary?.model;
    const select = h('select', { 'aria-label': 'Model' }, models.items.map((/** @type {any} */ { name, usable, note }) =>
      h('option', { value: name, selected: name === now, disabled: !usable }, visibleText(usable ? name : `${name} (${note})`))));
    const sure = await dialog({ title: 'Change the model', body: select, actions: [{ label: 'Cancel', value: '' }, { label: 'Change', value: 'yes', kind: 'primary' }], focus: select });
    if (sure === 'yes' && select.value !== now) await this.update({ model: select.value });
  }

  async close() {
    const sure = await confirm({ title: 'Close the session?', body: h('p', null, 'It never takes input again. Its log stays. A turn that runs is cancelled.'), action: 'Close the session', kind: 'danger' });
    if (sure) await this.run('The session was not closed', () => this.ctx.client.post(`${this.path}/close`, { force: true }), 'Closed');
  }

  /** @param {number} [at] */
  async fork(at) {
    const name = this.log.summary?.name ?? '';
    const title = await ask({
      title: at === undefined ? 'Fork the session' : `Fork the session at event ${at}`,
      label: 'Name of the new session', value: `${name} (fork)`, action: 'Fork', required: true,
      hint: 'It begins as a copy of this log. The files in the working directory stay as they are.',
    });
    if (!title) return;
    const body = at === undefined ? { title } : { title, at };
    const made = await this.run('The session was not forked', () => this.ctx.client.post(`${this.path}/fork`, body, key()));
    if (made?.session) this.ctx.navigate(`#/session/${made.session}/transcript`);
  }

  /** @param {number} at */
  async rewind(at) {
    const plan = await this.run('A rewind is not possible here', () => this.ctx.client.post(`${this.path}/rewind`, { at, files: true, dry_run: true }));
    if (!plan) return;
    const files = h('input', { type: 'checkbox', checked: plan.files.length > 0 });
    const body = [
      h('p', null, `The conversation goes back to event ${plan.rewound_to ?? at}. The log keeps what came after it.`),
      plan.files.length > 0 && h('label', { class: 'check' }, files, ` Also put back ${plan.files.length} ${plan.files.length === 1 ? 'file' : 'files'}`),
      list(plan.files), effects(plan),
    ];
    const force = plan.conflicts.length > 0;
    const sure = await dialog({ title: 'Rewind the conversation?', body, actions: [{ label: 'Cancel', value: '' }, { label: 'Rewind', value: 'yes', kind: 'danger' }] });
    if (sure !== 'yes') return;
    await this.run('The session was not rewound', () => this.ctx.client.post(`${this.path}/rewind`, { at, files: files.checked, force: force && files.checked }, key()), 'Rewound');
  }

  /** @param {{change?: string, turn?: string}} [what] */
  async undo(what = {}) {
    const plan = await this.run('There is nothing to undo', () => this.ctx.client.post(`${this.path}/undo`, { ...what, dry_run: true }));
    if (!plan) return false;
    const sure = await confirm({
      title: `Put back ${plan.files.length} ${plan.files.length === 1 ? 'file' : 'files'}?`,
      body: [list(plan.files), effects(plan)],
      action: 'Undo', kind: 'danger',
    });
    if (!sure) return false;
    return this.run('Nothing was undone', () => this.ctx.client.post(`${this.path}/undo`, { ...what, force: plan.conflicts.length > 0 }, key()), 'Undone. An undo can be undone, too.');
  }
}

const key = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

/** @param {string[]} files */
const list = (files) => h('ul', { class: 'mono' }, files.slice(0, 40).map((file) => h('li', null, visibleText(file))), files.length > 40 && h('li', null, `and ${files.length - 40} more`));

/** @param {any} plan */
function effects(plan) {
  return [
    plan.conflicts.length > 0 && h('p', { class: 'problem' }, 'These files have changed since; this discards those changes: ', visibleText(plan.conflicts.slice(0, 20).join(', '))),
    (plan.stays ?? []).length > 0 && h('p', { class: 'dim' }, 'This stays: ', visibleText(plan.stays.slice(0, 12).join('; '))),
  ];
}
