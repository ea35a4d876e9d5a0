// Who is signed in: the token of this tab, in session storage.

const TOKEN = 'agentd.token';
const PERSON = 'agentd.person';

export const signedIn = {
  token: () => sessionStorage.getItem(TOKEN) ?? '',
  /** @returns {import('./types.js').Person} */
  person() {
    try {
      return JSON.parse(sessionStorage.getItem(PERSON) ?? '');
    } catch {
      return { name: '', scopes: null };
    }
  },
  /** @param {string} token @param {import('./types.js').Person} person */
  keep(token, person) {
    sessionStorage.setItem(TOKEN, token);
    sessionStorage.setItem(PERSON, JSON.stringify(person));
  },
  forget() {
    sessionStorage.removeItem(TOKEN);
    sessionStorage.removeItem(PERSON);
  },
};
