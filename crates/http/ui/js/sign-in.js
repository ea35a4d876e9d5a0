// The form for signing in with a token.

import { Client } from './client.js';
import { h, say } from './dom.js';
import { signedIn } from './session-token.js';

/**
 * Who a token is; a daemon without that method leaves the scopes unknown.
 * @param {string} token
 * @returns {Promise<import('./types.js').Person>}
 */
async function whoIs(token) {
  const client = new Client({ token });
  try {
    const { principal, scopes, labels } = await client.get('/me');
    return { name: principal, scopes, labels };
  } catch (error) {
    if (/** @type {any} */ (error).status !== 404) throw error;
    await client.get('/sessions', { limit: 1 });
    return { name: '', scopes: null };
  }
}

/** @param {{why: string, done: () => void}} options */
export function signInForm({ why, done }) {
  const input = h('input', { type: 'password', name: 'token', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'agentd_…', 'aria-describedby': 'said' });
  const said = h('p', { id: 'said', class: 'said', role: 'alert' }, why);
  const button = h('button', { class: 'primary' }, 'Sign in');
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = input.value.trim();
    button.disabled = true;
    say(said, '');
    try {
      signedIn.keep(token, await whoIs(token));
      done();
    } catch (error) {
      const { message, hint } = /** @type {any} */ (error);
      say(said, hint ? `${message} – ${hint}` : message);
      button.disabled = false;
      input.select();
    }
  };
  return h('main', { class: 'sign-in', id: 'main' },
    h('div', { class: 'card' },
      h('h1', null, 'agentd'),
      h('p', null, 'Open this page with a link from the machine that agentd runs on:'),
      h('pre', { class: 'code' }, 'agentctl open'),
      h('p', null, 'Or sign in with a token:'),
      h('form', { on: { submit } }, h('label', { class: 'field' }, 'Token', input), button),
      said,
      h('p', { class: 'dim' }, 'The token stays in this tab and is gone when you close it. ', h('code', null, 'agentctl token create NAME --scope read'), ' makes one.')));
}
