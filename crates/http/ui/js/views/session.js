// One session: head, timeline, tabs. The route is `#/session/ID/TAB`; `?at=SEQ` points at an event.

import { h, put } from '../dom.js';
import { NOT_YET } from '../question.js';
import { visibleText } from '../text/visible.js';
import { failure, loading, toast } from '../ui.js';
import { Actions } from './session/actions.js';
import { Composer } from './session/composer.js';
import { context } from './session/context.js';
import { events } from './session/events.js';
import { openQuestion } from './session/fold.js';
import { Header } from './session/header.js';
import { Log } from './session/log.js';
import { changes, policy, prompt } from './session/tabs.js';
import { Timeline } from './session/timeline.js';
import { Transcript } from './session/transcript.js';

/** @type {[string, string][]} */
const TABS = [['transcript', 'Transcript'], ['events', 'Events'], ['changes', 'Changes'], ['context', 'Context'], ['prompt', 'Prompt'], ['policy', 'Policy']];

/** After an answer by key, further keys are no answers for this long. */
const PAUSE = 600;

class Session {
  /**
   * @param {HTMLElement} root
   * @param {import('../types.js').Context} ctx
   * @param {import('../types.js').Params} params
   */
  constructor(root, ctx, params) {
    this.root = root;
    this.ctx = ctx;
    this.params = params;
    this.log = new Log(ctx, params.path[0] || '@last');
    /** @type {(() => void)[]} */
    this.parts = [];
    this.tab = '';
    this.closeTab = () => {};
    this.answered = -PAUSE;
    /** @type {Transcript|null} */
    this.transcript = null;
    void this.open();
  }

  async open() {
    put(this.root, loading());
    try {
      await this.log.open();
    } catch (error) {
      if (this.log.stop.signal.aborted) return;
      put(this.root, failure(error, () => void this.open()));
      const { status } = /** @type {any} */ (error);
      if (status === 0 || status >= 500) this.openLater();
      return;
    }
    if (this.log.stop.signal.aborted) return;
    this.build();
    this.update(this.params);
  }

  /** A daemon that was away is asked again when it is back. */
  openLater() {
    const { store } = this.ctx;
    const done = store.subscribe(({ connection }) => {
      if (!connection || store.connection.state !== 'live') return;
      done();
      void this.open();
    });
    this.log.stop.signal.addEventListener('abort', done, { once: true });
  }

  build() {
    const { ctx, log } = this;
    const actions = new Actions(ctx, log);
    const header = new Header(log, actions);
    const timeline = new Timeline(log, (seq) => this.go('transcript', seq));
    this.tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Parts of the session' }, TABS.map(([name, label], n) =>
      h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'tab-panel', title: `${label} (${n + 1})`, on: { click: () => this.go(name) } }, label)));
    this.tabs.addEventListener('keydown', (event) => this.tabKey(event));
    this.panel = h('div', { class: 'tab-panel', id: 'tab-panel', role: 'tabpanel' });
    const transcript = new Transcript(log, {
      ctx,
      eventLink: (seq) => `#/session/${log.session}/events?at=${seq}`,
      fork: (at) => void actions.fork(at),
      rewind: (at) => void actions.rewind(at),
    });
    const composer = new Composer(ctx, log, () => transcript.lock());
    this.transcript = transcript;
    this.stage = h('div', { class: 'stage' }, transcript.element, transcript.jump, composer.element);
    this.actions = actions;
    put(this.root, h('div', { class: 'session' }, header.element, timeline.element, this.tabs, this.panel));
    this.parts = [() => header.dispose(), () => timeline.dispose(), () => transcript.dispose(), () => composer.dispose(), this.keys(actions, composer, timeline),
      log.subscribe(({ summary }) => summary && this.title())];
    this.title();
  }

  title() {
    this.ctx.title(visibleText(this.log.summary?.name || 'Session'));
  }

  /** @param {KeyboardEvent} event */
  tabKey(event) {
    const at = TABS.findIndex(([name]) => name === this.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const [name] = TABS[(to + TABS.length) % TABS.length];
    this.go(name);
    document.getElementById(`tab-${name}`)?.focus();
  }

  /**
   * @param {Actions} actions
   * @param {Composer} composer
   * @param {Timeline} timeline
   */
  keys(actions, composer, timeline) {
    const can = this.ctx.can('steer');
    /** @type {Record<string, {help: string, run: (event: KeyboardEvent) => void}>} */
    const keys = {};
    TABS.forEach(([name, label], n) => (keys[String(n + 1)] = { help: label, run: () => this.go(name) }));
    Object.assign(keys, {
      G: { help: 'follow the end', run: () => (this.go('transcript'), this.transcript?.lock()) },
      j: { help: 'next turn or message', run: () => this.step(1, ['input', 'end', 'question']) },
      k: { help: 'previous turn or message', run: () => this.step(-1, ['input', 'end', 'question']) },
      J: { help: 'next call', run: () => this.step(1, ['tool']) },
      K: { help: 'previous call', run: () => this.step(-1, ['tool']) },
      E: { help: 'next failure', run: () => this.transcript?.step(1, (item) => (item.finished && item.finished.status !== 'ok') || item.attempts?.some(({ failed }) => failed) === true) },
      t: { help: 'timeline', run: () => {
        timeline.element.open = true;
        timeline.box.focus();
      } },
    });
    if (can) {
      Object.assign(keys, {
        i: { help: 'write a message', run: () => (this.go('transcript'), composer.focus()) },
        p: { help: 'pause or resume', run: () => void actions.toggle() },
        C: { help: 'cancel the turn', run: () => void actions.cancel() },
        u: { help: 'undo the last change of files', run: () => void actions.undo() },
      });
    }
    if (this.ctx.can('approve')) {
      for (const [key, help] of [['y', 'allow once'], ['s', 'allow for the session'], ['a', 'allow always in this project'], ['e', 'allow everywhere'], ['n', 'deny']]) keys[key] = { help, run: (event) => this.answer(key, event.repeat) };
    }
    return this.ctx.keys(keys);
  }

  /** @param {1|-1} step @param {string[]} kinds */
  step(step, kinds) {
    this.transcript?.step(step, (item) => kinds.includes(item.kind));
  }

  /** Presses a button of the first question on display, never of a hidden one. @param {string} key @param {boolean} repeats */
  answer(key, repeats) {
    // A key that is pressed twice is meant for one question, not for the next one, which comes just then.
    if (repeats || performance.now() - this.answered < PAUSE) return;
    const box = this.transcript?.element.getBoundingClientRect();
    const cards = this.tab === 'transcript' ? [...this.root.querySelectorAll('.approval')] : [];
    // A part of it is enough: the buttons of a long question are below the display, and allow nothing before its end was seen.
    const card = cards.find((one) => {
      const own = one.getBoundingClientRect();
      return box && own.top < box.bottom && own.bottom > box.top;
    });
    if (card) {
      this.answered = performance.now();
      /** @type {HTMLButtonElement|null} */
      const button = card.querySelector(`button[data-answer="${key}"]`);
      if (button?.disabled) toast(NOT_YET);
      else button?.click();
      return;
    }
    const item = this.log.fold.items.find((one) => openQuestion(one) || (one.child && !one.childEnd && this.log.asks.size > 0));
    if (item) this.go('transcript', item.questions?.at(-1)?.asked.seq ?? item.seq);
  }

  /** @param {string} tab @param {number} [at] */
  go(tab, at = 0) {
    const hash = `#/session/${this.log.session}/${tab}${at ? `?at=${at}` : ''}`;
    if (location.hash === hash) this.update({ path: [this.log.session, tab], query: new URLSearchParams(at ? { at: String(at) } : {}) });
    else this.ctx.navigate(hash);
  }

  /** @param {import('../types.js').Params} params */
  update(params) {
    this.params = params;
    if (!this.panel || !this.transcript || !this.stage || !this.actions) return;
    const wanted = params.path[1] ?? 'transcript';
    const tab = TABS.some(([name]) => name === wanted) ? wanted : 'transcript';
    const at = Number(params.query.get('at')) || 0;
    if (tab !== this.tab || (tab === 'events' && at)) this.show(tab, at);
    if (tab === 'transcript' && at) this.reveal(at);
  }

  /** @param {string} tab @param {number} at */
  show(tab, at) {
    const { ctx, log, panel } = this;
    if (!panel || !this.transcript || !this.stage || !this.actions) return;
    this.closeTab();
    this.tab = tab;
    for (const button of this.tabs?.children ?? []) {
      const on = button.id === `tab-${tab}`;
      button.setAttribute('aria-selected', String(on));
      button.setAttribute('tabindex', on ? '0' : '-1');
    }
    panel.setAttribute('aria-labelledby', `tab-${tab}`);
    panel.className = `tab-panel p-${tab}`;
    this.closeTab = () => {};
    if (tab === 'transcript') {
      const { scrollTop } = this.transcript;
      put(panel, this.stage);
      this.transcript.back(scrollTop);
      return;
    }
    const root = h('div', { class: 'tab-body' });
    put(panel, root);
    if (tab === 'events') this.closeTab = events(root, log, { seq: at, transcript: (seq) => this.go('transcript', seq) });
    else if (tab === 'changes') this.closeTab = changes(root, ctx, log, this.actions);
    else if (tab === 'context') this.closeTab = context(root, log);
    else if (tab === 'prompt') this.closeTab = prompt(root, ctx, log);
    else this.closeTab = policy(root, log);
  }

  /** Shows an event, as soon as it is loaded. @param {number} seq */
  reveal(seq) {
    const { log, transcript } = this;
    if (seq > log.base) {
      transcript?.reveal(seq);
      return;
    }
    const done = log.subscribe(({ all }) => {
      if (!all || seq <= log.base) return;
      done();
      transcript?.reveal(seq);
    });
  }

  dispose() {
    this.closeTab();
    for (const part of this.parts) part();
    this.log.dispose();
  }
}

/** @type {import('../types.js').View} */
export const session = {
  title: 'Session',
  mount(root, ctx, params) {
    const view = new Session(root, ctx, params);
    return { dispose: () => view.dispose(), update: (next) => view.update(next) };
  },
};
