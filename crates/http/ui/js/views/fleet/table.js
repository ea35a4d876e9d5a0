// The table of the fleet. Only the rows in sight are in the document, at most a screenful and some more; they are reused.

import { h, put, say } from '../../dom.js';
import { age, count, exact, group, money, moment, short, stateMark, stateWord, tokens } from '../../format.js';
import { oneLine } from '../../text/visible.js';
import { why } from '../../ui.js';

/** @typedef {import('./query.js').Line} Line */

/** Rows above and below the window. */
const MORE = 6;
const COLUMNS = [
  { name: 'select', label: '' },
  { name: 'state', label: 'State', sort: 'state' },
  { name: 'name', label: 'Session', sort: 'name' },
  { name: 'reason', label: 'Why', sort: 'reason' },
  { name: 'since', label: 'For', sort: 'since' },
  { name: 'model', label: 'Model', sort: 'model' },
  { name: 'steps', label: 'Steps', sort: 'steps' },
  { name: 'tokens', label: 'Tokens', sort: 'tokens' },
  { name: 'cost', label: 'Cost', sort: 'cost' },
  { name: 'age', label: 'Age', sort: 'created' },
  { name: 'last', label: 'Last event', sort: 'updated' },
];

export class Table {
  /** @param {{selectable: boolean, onOpen: (id: string) => void, onSort: (sort: string) => void, onFold: (id: string) => void, onSelect: () => void, onEnd: () => void}} options */
  constructor(options) {
    this.options = options;
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Set<string>} */
    this.selected = new Set();
    /** @type {Set<string>} */
    this.folded = new Set();
    this.active = '';
    /** @type {Map<number, RowElement>} */
    this.shown = new Map();
    /** @type {RowElement[]} */
    this.spare = [];
    this.height = 30;
    this.all = h('input', { type: 'checkbox', 'aria-label': 'Select all rows', on: { change: () => this.selectAll() } });
    this.heads = new Map(COLUMNS.map((column) => [column.sort ?? '', this.head(column)]));
    this.body = h('div', { class: 'rows', role: 'rowgroup' });
    this.element = h('div', {
      class: `fleet-table${options.selectable ? '' : ' no-select'}`, role: 'treegrid', tabindex: 0, 'aria-label': 'Sessions', 'aria-multiselectable': options.selectable ? 'true' : null,
      on: { scroll: () => this.scrolled() },
    }, h('div', { role: 'rowgroup', class: 'heads' }, h('div', { role: 'row', class: 'line head' }, [...this.heads.values()])), this.body);
    this.resize = new ResizeObserver(() => this.paint());
    this.resize.observe(this.element);
    this.frame = 0;
  }

  dispose() {
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** @param {{name: string, label: string, sort?: string}} column */
  head({ name, label, sort }) {
    const content = sort
      ? h('button', { type: 'button', class: 'sort', on: { click: () => this.options.onSort(sort) } }, label)
      : this.options.selectable ? this.all : h('span', { class: 'hidden' }, 'mark');
    return h('div', { role: 'columnheader', class: `c-${name}` }, content);
  }

  /** @param {import('./query.js').Query} query */
  sorted({ sort, desc }) {
    for (const [name, head] of this.heads) {
      if (name === sort) head.setAttribute('aria-sort', desc ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
  }

  /** @param {Line[]} lines */
  set(lines) {
    this.lines = lines;
    this.element.setAttribute('aria-rowcount', String(lines.length + 1));
    this.paint();
  }

  scrolled() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint(false);
    });
  }

  /** Brings the rows in sight up to date; with `all = false` only those that come into sight. */
  paint(all = true) {
    // Without rows, the size of the table is not worth a layout.
    if (!this.lines.length && !this.shown.size) return;
    // The first rows are made for the whole window: to measure the table would lay it out twice.
    const { clientWidth, clientHeight, scrollTop } = this.shown.size ? this.element : { clientWidth: innerWidth, clientHeight: innerHeight, scrollTop: 0 };
    const narrow = clientWidth < 760;
    this.height = narrow ? 60 : 30;
    this.element.classList.toggle('narrow', narrow);
    const total = `${this.lines.length * this.height}px`;
    if (this.body.style.height !== total) this.body.style.height = total;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - MORE);
    const last = Math.min(this.lines.length, Math.ceil((scrollTop + clientHeight) / this.height) + MORE);
    for (const [index, element] of this.shown) {
      if (index < first || index >= last) {
        this.shown.delete(index);
        element.root.hidden = true;
        this.spare.push(element);
      }
    }
    const now = Date.now();
    for (let index = first; index < last; index += 1) {
      const line = this.lines[index];
      if (!line) continue;
      let element = this.shown.get(index);
      if (!element) {
        element = this.spare.pop() ?? this.make();
        this.shown.set(index, element);
        element.root.hidden = false;
      } else if (!all) {
        continue;
      }
      element.show(line, index, this, now);
    }
    if (this.active && [...this.shown.values()].some(({ id }) => id === this.active)) this.element.setAttribute('aria-activedescendant', `row-${this.active}`);
    else this.element.removeAttribute('aria-activedescendant');
    const count = this.selected.size;
    this.all.checked = count > 0 && count >= this.lines.length;
    this.all.indeterminate = count > 0 && count < this.lines.length;
    if (last >= this.lines.length - 20) this.options.onEnd();
  }

  make() {
    const element = new RowElement(this);
    this.body.append(element.root);
    return element;
  }

  /** @param {number} by */
  move(by) {
    if (!this.lines.length) return;
    const at = this.lines.findIndex(({ row }) => row.session === this.active);
    const next = Math.max(0, Math.min(this.lines.length - 1, at < 0 ? (by > 0 ? 0 : this.lines.length - 1) : at + by));
    this.active = this.lines[next]?.row.session ?? '';
    const head = 30;
    const top = next * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height + head > scrollTop + clientHeight) this.element.scrollTop = top + this.height + head - clientHeight;
    this.paint();
  }

  /** @param {string} id @param {boolean} [on] */
  select(id, on = !this.selected.has(id)) {
    if (!id || !this.options.selectable) return;
    if (on) this.selected.add(id);
    else this.selected.delete(id);
    this.options.onSelect();
    this.paint();
  }

  selectAll() {
    const some = this.selected.size > 0;
    this.selected.clear();
    if (!some) for (const { row } of this.lines) this.selected.add(row.session);
    this.options.onSelect();
    this.paint();
  }
}

class RowElement {
  /** @param {Table} table */
  constructor(table) {
    this.id = '';
    /** @type {import('../../types.js').Labels|null} */
    this.labelled = null;
    /** What the parts show: reading it from the document would cost more. @type {Map<string, string>} */
    this.values = new Map();
    this.check = h('input', { type: 'checkbox', tabindex: -1, on: { change: () => table.select(this.id, this.check.checked) } });
    this.mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
    this.word = h('span');
    this.state = h('div', { role: 'gridcell', class: 'c-state' }, this.mark, this.word);
    this.fold = h('button', { type: 'button', class: 'fold', tabindex: -1, on: { click: () => table.options.onFold(this.id) } });
    this.link = h('a', { tabindex: -1, href: '#/fleet' });
    this.labels = h('span', { class: 'labels' });
    this.cells = new Map(['reason', 'since', 'model', 'steps', 'tokens', 'cost', 'age', 'last'].map((name) => [name, h('div', { role: 'gridcell', class: `c-${name}` })]));
    this.root = h('div', { role: 'row', class: 'line', on: { click: (/** @type {MouseEvent} */ event) => this.clicked(event, table) } },
      h('div', { role: 'gridcell', class: 'c-select' }, table.options.selectable ? this.check : null), this.state,
      h('div', { role: 'gridcell', class: 'c-name' }, this.fold, this.link, this.labels), [...this.cells.values()]);
  }

  /** @param {MouseEvent} event @param {Table} table */
  clicked(event, table) {
    table.active = this.id;
    if (event.target instanceof HTMLElement && event.target.closest('a, button, input')) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) table.select(this.id);
    else table.options.onOpen(this.id);
  }

  /**
   * @param {Line} line
   * @param {number} index
   * @param {Table} table
   * @param {number} now
   */
  show({ row, depth, children }, index, table, now) {
    const { root } = this;
    const top = `translateY(${index * table.height}px)`;
    if (this.fresh('top', top)) root.style.transform = top;
    const name = oneLine(row.name, 160) || short(row.session);
    if (this.id !== row.session) {
      this.id = row.session;
      root.id = `row-${row.session}`;
      this.link.href = `#/session/${row.session}`;
    }
    this.set(root, 'aria-rowindex', String(index + 2));
    this.set(root, 'aria-level', String(depth + 1));
    this.set(root, 'aria-expanded', children ? String(!table.folded.has(row.session)) : null);
    const chosen = table.selected.has(row.session);
    if (table.options.selectable) {
      this.set(root, 'aria-selected', String(chosen));
      this.set(this.check, 'aria-label', `Select ${name}`);
      if (this.check.checked !== chosen) this.check.checked = chosen;
    }
    const look = `line${row.session === table.active ? ' active' : ''}${chosen ? ' chosen' : ''}`;
    if (this.fresh('look', look)) root.className = look;
    const state = `c-state s-${group(row.state)}`;
    if (this.fresh('state', `${state} ${row.state}`)) {
      this.state.className = state;
      say(this.mark, stateMark(row.state));
      say(this.word, stateWord(row.state));
    }
    const folded = table.folded.has(row.session);
    if (this.fresh('fold', `${children} ${folded}`)) {
      this.fold.hidden = children === 0;
      say(this.fold, folded ? `▸${children}` : '▾');
      this.fold.setAttribute('aria-label', folded ? `Show ${children} sub-agents` : `Hide ${children} sub-agents`);
    }
    if (this.fresh('depth', String(depth))) {
      this.link.style.marginLeft = depth ? `${Math.min(depth, 8) * 16}px` : '';
      this.link.classList.toggle('child', depth > 0);
    }
    if (this.fresh('name', `${name} ${row.session}`)) {
      say(this.link, name);
      this.link.title = `${name}\n${row.session}\n${oneLine(row.workdir, 300)}`;
    }
    if (this.labelled !== row.labels && this.fresh('labels', JSON.stringify(row.labels))) {
      put(this.labels, Object.entries(row.labels).slice(0, 4).map(([key, value]) => h('span', { class: 'tag' }, oneLine(`${key}=${value}`, 40))));
    }
    this.labelled = row.labels;
    const rest = ['idle', 'closed'].includes(row.state);
    this.say('reason', rest ? (row.last_error?.message ?? '') : oneLine(why(row)), true);
    this.say('since', age(row.since, now), false, moment(row.since));
    this.say('model', oneLine(row.model, 60), true);
    this.say('steps', String(row.steps));
    this.say('tokens', count(tokens(row.usage)), false, `${exact(tokens(row.usage))} tokens`);
    this.say('cost', money(row.cost_usd));
    this.say('age', age(row.created_at, now), false, moment(row.created_at));
    this.say('last', row.last ? oneLine(row.last) : `${age(row.updated_at, now)} ago`, true);
  }

  /** Whether a part shows something else until now. @param {string} part @param {string} value */
  fresh(part, value) {
    if (this.values.get(part) === value) return false;
    this.values.set(part, value);
    return true;
  }

  /** @param {string} name @param {string} text @param {boolean} [own] the text is its own tooltip @param {string} [title] */
  say(name, text, own = false, title = '') {
    if (!this.fresh(name, text)) return;
    const cell = /** @type {HTMLElement} */ (this.cells.get(name));
    cell.textContent = text;
    const tip = own ? text : title;
    if (tip) cell.title = tip;
  }

  /** @param {Element} element @param {string} name @param {string|null} value */
  set(element, name, value) {
    if (!this.fresh(name, value ?? '')) return;
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
}
