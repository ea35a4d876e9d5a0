// Runs first: turns the code of a link from `agentctl open` into a token, and asks for the first rows of the fleet.

import { signedIn } from './session-token.js';

/** Rows of the very first request: enough for the first screen. */
const SCREENFUL = 50;
/** The page goes on without them after this many milliseconds. */
const PATIENCE = 5_000;

/** Turns `#code=` into a token; the code leaves the address bar at once. @returns {Promise<string>} why it failed */
async function useCode() {
  const code = /^#code=([^&]+)/.exec(location.hash)?.[1];
  if (!code) return '';
  history.replaceState(null, '', `${location.pathname}#/fleet`);
  const body = JSON.stringify({ code: decodeURIComponent(code) });
  try {
    const response = await fetch('/v1/sign-in', { method: 'POST', body, headers: { 'Content-Type': 'application/json' }, cache: 'no-store', credentials: 'omit' });
    if (!response.ok) {
      const { problem } = await import('./client.js');
      return `This link does not work any more: ${(await problem(response)).message} Each link works once; \`agentctl open\` makes a new one.`;
    }
    const { token, ...person } = await response.json();
    signedIn.keep(token, person);
    return '';
  } catch {
    return 'agentd does not answer. Is it running? `agentctl daemon status` says so on its machine.';
  }
}

/** The newest sessions, or nothing: then whoever wants them asks again, and says what is wrong. */
async function screenful() {
  const token = signedIn.token();
  if (!token) return null;
  const response = await fetch(`/v1/sessions?limit=${SCREENFUL}`, { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(PATIENCE) });
  return response.ok ? response.json() : null;
}

/** Settles when the code is used, or at once without one. */
export const arrived = useCode();

/** @type {Promise<{items: import('./types.js').Row[], next: string|null}|null>} */
export const firstRows = arrived.then(screenful).catch(() => null);
