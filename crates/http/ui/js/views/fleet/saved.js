// Saved views: names for fragments, kept in this browser.

import { h, put } from '../../dom.js';
import { ask, toast } from '../../ui.js';

const KEY = 'agentd.views';
const BUILT_IN = [
  { name: 'Needs attention', hash: '#/fleet?state=person,limited,failed&sort=state' },
  { name: 'Most expensive', hash: '#/fleet?sort=cost' },
  { name: 'Longest in their state', hash: '#/fleet?state=running,person,limited&sort=since&order=asc' },
];

/** @returns {{name: string, hash: string}[]} */
function stored() {
  try {
    const views = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(views) ? views.filter(({ name, hash }) => typeof name === 'string' && String(hash).startsWith('#/fleet')) : [];
  } catch {
    return [];
  }
}

/** @param {import('../../types.js').Context} ctx */
export function savedViews(ctx) {
  const list = h('div', { class: 'menu' });
  const menu = h('details', { class: 'dropdown' }, h('summary', { class: 'button' }, 'Views'), list);
  const close = () => {
    menu.open = false;
  };
  const draw = () => {
    const own = stored();
    put(list,
      BUILT_IN.map(({ name, hash }) => h('a', { href: hash, on: { click: close } }, name)),
      own.length > 0 && h('hr'),
      own.map(({ name, hash }) => h('span', { class: 'own' },
        h('a', { href: hash, class: 'grow', on: { click: close } }, name),
        h('button', {
          type: 'button', class: 'icon', 'aria-label': `Remove the view ${name}`,
          on: {
            click: () => {
              localStorage.setItem(KEY, JSON.stringify(stored().filter((view) => view.name !== name)));
              draw();
            },
          },
        }, '×'))),
      h('hr'),
      h('button', { type: 'button', class: 'quiet', on: { click: () => void save() } }, 'Save this view…'));
  };
  const save = async () => {
    close();
    const name = await ask({ title: 'Save this view', label: 'Name', action: 'Save', required: true, hint: 'Filters and order, kept in this browser.' });
    if (!name) return;
    const hash = location.hash || '#/fleet';
    localStorage.setItem(KEY, JSON.stringify([...stored().filter((view) => view.name !== name), { name, hash }]));
    draw();
    toast(`Saved the view “${name}”.`, { kind: 'good' });
  };
  menu.addEventListener('toggle', () => menu.open && draw());
  menu.addEventListener('focusout', (event) => {
    if (!menu.contains(/** @type {Node|null} */ (event.relatedTarget))) setTimeout(() => !menu.contains(document.activeElement) && close(), 150);
  });
  ctx.title('Fleet');
  return menu;
}
