// The start: sign-in, then the shell with one view at a time. The fragment says which.

import { arrived, firstRows } from './arrive.js';
import { Client } from './client.js';
import { h, put } from './dom.js';
import { bind, listen } from './keyboard.js';
import { notify } from './notify.js';
import { signedIn } from './session-token.js';
import { Shell } from './shell.js';
import { restWhenHidden } from './sight.js';
import { signInForm } from './sign-in.js';
import { Store } from './store.js';
import { theme } from './theme.js';
import { failure, loading, tick, toast, toastRegion } from './ui.js';

/** @typedef {import('./types.js').View} View */

/** Each view is loaded when it is first shown. @type {Record<string, () => Promise<View>>} */
const VIEWS = {
  fleet: async () => (await import('./views/fleet.js')).fleet,
  session: async () => (await import('./views/session.js')).session,
  approvals: async () => (await import('./views/approvals.js')).approvals,
  usage: async () => (await import('./views/usage.js')).usage,
  node: async () => (await import('./views/node.js')).node,
  audit: async () => (await import('./views/audit.js')).audit,
};

const app = /** @type {HTMLElement} */ (document.getElementById('app'));

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @returns {{name: string, path: string[], query: URLSearchParams}} */
function route() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map(decoded);
  const name = parts[0] || 'fleet';
  return { name: Object.hasOwn(VIEWS, name) ? name : 'fleet', path: parts.slice(1), query: new URLSearchParams(query) };
}

/** @param {string} why */
function showSignIn(why) {
  document.title = 'Sign in · agentd';
  put(app, signInForm({ why, done: () => run() }), toastRegion());
}

/** Belongs to the first person who signs in here. */
let rows = firstRows;

function run() {
  const early = rows;
  rows = Promise.resolve(null);
  const client = new Client({ token: signedIn.token(), onSignedOut: (error) => leave(`${error.message}. ${error.hint ?? ''}`) });
  const store = new Store(client, early);
  const person = signedIn.person();
  const can = (/** @type {string} */ scope) => person.scopes === null || person.scopes.includes(scope);
  const main = h('main', { id: 'main', tabindex: -1 });
  const shell = new Shell({ client, store, person, leave: () => leave(''), retry: () => dispatchEvent(new Event('agentd:retry')) });
  put(app, shell.element, toastRegion());
  shell.element.append(main);

  /** @type {import('./types.js').Context} */
  const ctx = {
    client,
    store,
    can,
    keys: bind,
    title: (title) => shell.title(title),
    navigate(hash, { replace = false } = {}) {
      if (!replace) {
        location.hash = hash;
        return;
      }
      history.replaceState(null, '', `${location.pathname}${hash}`);
      void show();
    },
  };
  /** @type {{name: string, mounted: import('./types.js').Mounted|null, dispose: () => void}} */
  let shown = { name: '', mounted: null, dispose() {} };
  let turn = 0;

  async function show() {
    const { name, path, query } = route();
    const params = { path, query };
    const key = name === 'session' ? `${name}/${path[0] ?? ''}` : name;
    if (shown.name === key && shown.mounted) {
      shown.mounted.update(params);
      return;
    }
    const mine = ++turn;
    shown.dispose();
    shown = { name: key, mounted: null, dispose() {} };
    put(main, loading());
    shell.current(name);
    try {
      const view = await VIEWS[name]?.();
      if (mine !== turn || !view) return;
      put(main);
      main.className = `view-${name}`;
      ctx.title(view.title);
      const mounted = view.mount(main, ctx, params);
      if (mounted && 'update' in mounted) shown = { name: key, mounted, dispose: mounted.dispose };
      else shown.dispose = mounted ?? (() => {});
    } catch (error) {
      if (mine === turn) put(main, failure(error, () => void show()));
      console.error(error);
    }
  }

  const clock = setInterval(() => tick(app), 1000);
  const unnotify = notify.watch(store);
  const unwatch = restWhenHidden(store);
  const unbind = bind({
    'g f': { help: 'go to the fleet', run: () => ctx.navigate('#/fleet') },
    'g a': { help: 'go to the approvals', run: () => ctx.navigate('#/approvals') },
    'g u': { help: 'go to usage and limits', run: () => ctx.navigate('#/usage') },
    'g n': { help: 'go to the node', run: () => ctx.navigate('#/node') },
    ...(can('admin') ? { 'g l': { help: 'go to the audit log', run: () => ctx.navigate('#/audit') } } : {}),
    T: { help: 'light, dark or automatic colours', run: () => shell.switchTheme() },
  });
  addEventListener('hashchange', show);

  /** @param {string} why */
  function leave(why) {
    if (!signedIn.token()) return;
    signedIn.forget();
    store.stop();
    clearInterval(clock);
    unbind();
    unnotify();
    unwatch();
    shown.dispose();
    shell.dispose();
    removeEventListener('hashchange', show);
    showSignIn(why);
  }

  store.start();
  // A person with several daemons needs to see which one this is.
  store.shown.then(() => client.get('/me')).then((me) => shell.daemon(me), () => {});
  void show();
}

async function start() {
  theme.start();
  listen();
  // A link that is opened in a tab that already shows the page only changes the fragment.
  addEventListener('hashchange', () => {
    if (location.hash.startsWith('#code=')) location.reload();
  });
  document.getElementById('skip')?.addEventListener('click', (event) => {
    event.preventDefault();
    document.getElementById('main')?.focus();
  });
  const why = await arrived;
  if (signedIn.token()) {
    run();
    if (why) toast(why, { kind: 'bad' });
  } else {
    showSignIn(why);
  }
}

void start();
