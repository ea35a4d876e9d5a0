// The fleet: counters by state and a table of all sessions, live.

import { h, put, say } from '../dom.js';
import { exact, plural } from '../format.js';
import { agentctl, blank, copies, curl, failure, loading } from '../ui.js';
import { Bulk } from './fleet/bulk.js';
import { Counters } from './fleet/counters.js';
import { ASCENDING, STATES, lines, read, words, write } from './fleet/query.js';
import { savedViews } from './fleet/saved.js';
import { Table } from './fleet/table.js';

/** Larger fleets are put into order only this often; rows in sight change at once. */
const REORDER = 400;

/** @type {import('../types.js').View} */
export const fleet = {
  title: 'Fleet',
  mount(root, ctx, params) {
    const { store } = ctx;
    let query = read(params.query);
    let due = 0;

    const go = (/** @type {Partial<import('./fleet/query.js').Query>} */ change, replace = false) => {
      ctx.navigate(write({ ...query, ...change }), { replace });
    };
    const toggle = (/** @type {string} */ name) =>
      go({ states: query.states.includes(name) ? query.states.filter((state) => state !== name) : [...query.states, name] });

    const counters = new Counters({ ctx, onToggle: toggle, onCounted: () => (counters.update(query.states), status(table.lines.length)) });
    const table = new Table({
      selectable: ctx.can('steer'),
      onOpen: (id) => ctx.navigate(`#/session/${id}`),
      onSort: (sort) => go({ sort, desc: sort === query.sort ? !query.desc : !ASCENDING.includes(sort) }),
      onFold: (id) => {
        if (!table.folded.delete(id)) table.folded.add(id);
        order();
      },
      onSelect: () => bulk.update(),
      onEnd: () => store.more(),
    });
    const bulk = new Bulk({ ctx, table });
    const filter = h('input', {
      type: 'search', class: 'filter', placeholder: 'Filter: words, key=value for labels', 'aria-label': 'Filter', value: query.text, spellcheck: 'false',
      on: {
        input: () => go({ text: filter.value }, true),
        keydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key === 'Enter' || event.key === 'ArrowDown') {
            event.preventDefault();
            table.element.focus();
            table.move(0);
          }
        },
      },
    });
    const tree = h('button', { type: 'button', title: 'Sub-agents below the session that started them (t)', on: { click: () => go({ tree: !query.tree }) } }, 'Tree');
    const closed = h('button', { type: 'button', title: 'Show closed sessions, too', on: { click: () => go({ all: !query.all }) } }, 'Closed');
    const shown = h('span', { class: 'dim shown', 'aria-live': 'polite' });
    const state = h('div', { class: 'fleet-state' });

    root.append(h('h1', { class: 'hidden' }, 'Fleet'), counters.element,
      h('div', { class: 'toolbar' }, filter, tree, closed, savedViews(ctx), shown, h('span', { class: 'grow' }),
        copies(() => ({ command: command(query), curl: curl('GET', path(query)) }))),
      table.element, state, bulk.element);

    function order() {
      clearTimeout(due);
      due = 0;
      const started = performance.now();
      const all = lines(store.rows.values(), query, table.folded);
      // The table fills the room that it has, so what is next to it comes first.
      table.element.hidden = all.length === 0;
      state.hidden = all.length > 0;
      table.set(all);
      if (performance.getEntriesByName('agentd:order').length > 100) performance.clearMeasures('agentd:order');
      performance.measure('agentd:order', { start: started });
      for (const id of table.selected) if (!store.rows.has(id)) table.selected.delete(id);
      bulk.update();
      status(all.length);
    }

    /** @param {number} found */
    function status(found) {
      let loaded = 0;
      for (const { state: now } of store.rows.values()) if (query.all || now !== 'closed') loaded += 1;
      // What the page has not read yet, the daemon has counted.
      const counted = query.all ? null : counters.all;
      const all = store.complete ? loaded : Math.max(loaded, counted ?? 0);
      const more = !store.complete && counted === null ? '+' : '';
      say(shown, !store.loaded ? '' : found === all && !more ? plural(found, 'session') : `${exact(found)} of ${exact(all)}${more}`);
      if (found > 0) {
        if (!performance.getEntriesByName('agentd:rows').length) performance.mark('agentd:rows');
        put(state);
        return;
      }
      if (!store.loaded && store.error) put(state, failure(store.error, () => void store.load()));
      else if (!store.loaded) put(state, loading());
      else if (store.rows.size === 0) put(state, blank('No sessions yet.', ['Start one: ', h('code', null, 'agentctl run "fix the failing test"')], 'It appears here at once.'));
      else put(state, blank('No session matches the filter.', h('button', { type: 'button', on: { click: () => ctx.navigate('#/fleet') } }, 'Show all sessions')));
    }

    function apply() {
      say(tree, 'Tree');
      tree.setAttribute('aria-pressed', String(query.tree));
      closed.setAttribute('aria-pressed', String(query.all));
      if (document.activeElement !== filter) filter.value = query.text;
      table.sorted(query);
      store.setView({
        states: query.states.flatMap((name) => STATES[name] ?? []), labels: words(query.text).labels.join(','),
        search: words(query.text).plain.join(' '), sort: query.sort, desc: query.desc, all: query.all,
      });
      counters.update(query.states);
      order();
    }

    const unsubscribe = store.subscribe((change) => {
      if (!change.rows) return;
      counters.update(query.states);
      if (store.rows.size < 500) order();
      else {
        for (const line of table.lines) if (change.changed.has(line.row.session)) line.row = store.rows.get(line.row.session) ?? line.row;
        table.paint();
        if (!due) due = window.setTimeout(order, REORDER);
      }
    });
    // Ages grow, and states without an event are read again.
    const ages = setInterval(() => {
      table.paint();
      if (!document.hidden && store.connection.state === 'live') store.recheck([...table.shown.values()].map(({ id }) => id));
    }, 1000);

    const unbind = ctx.keys({
      '/': { help: 'filter', run: () => filter.focus() },
      j: { help: 'next row', run: () => table.move(1) },
      k: { help: 'row before', run: () => table.move(-1) },
      ArrowDown: { help: '', run: () => table.move(1) },
      ArrowUp: { help: '', run: () => table.move(-1) },
      PageDown: { help: '', run: () => table.move(20) },
      PageUp: { help: '', run: () => table.move(-20) },
      Home: { help: '', run: () => table.move(-1e9) },
      End: { help: '', run: () => table.move(1e9) },
      Enter: { help: 'open the session', run: () => table.active && ctx.navigate(`#/session/${table.active}`) },
      x: { help: 'select the row', run: () => table.select(table.active) },
      ' ': { help: '', run: () => table.select(table.active) },
      A: { help: 'select all rows, or none', run: () => table.selectAll() },
      t: { help: 'sub-agents as a tree', run: () => go({ tree: !query.tree }) },
      p: { help: 'pause the selected sessions', run: () => void bulk.act('pause') },
      r: { help: 'resume the selected sessions', run: () => void bulk.act('resume') },
      c: { help: 'cancel the turns of the selected sessions', run: () => void bulk.act('cancel') },
      Escape: { help: 'clear selection and filter', run: () => (table.selected.size ? bulk.clear() : ctx.navigate('#/fleet')) },
    });
    apply();

    return {
      dispose() {
        unsubscribe();
        unbind();
        clearInterval(ages);
        clearTimeout(due);
        counters.dispose();
        table.dispose();
      },
      update(next) {
        query = read(next.query);
        apply();
      },
    };
  },
};

/** @param {import('./fleet/query.js').Query} query */
function command(query) {
  const args = ['ps'];
  const states = query.states.flatMap((name) => STATES[name] ?? []);
  const labels = words(query.text).labels;
  if (query.all) args.push('--all');
  if (states.length) args.push('--state', states.join(','));
  if (labels.length) args.push('--label', labels.join(','));
  if (['updated', 'name', 'state', 'steps', 'tokens', 'cost'].includes(query.sort)) args.push('--sort', query.sort);
  if (query.tree) args.push('--tree');
  return agentctl(...args);
}

/** @param {import('./fleet/query.js').Query} query */
function path(query) {
  const params = new URLSearchParams();
  const states = query.states.flatMap((name) => STATES[name] ?? []);
  if (states.length) params.set('states', states.join(','));
  const labels = words(query.text).labels;
  if (labels.length) params.set('labels', labels.join(','));
  if (query.all) params.set('all', 'true');
  return `/sessions${params.size ? `?${params}` : ''}`;
}
