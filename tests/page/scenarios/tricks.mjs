// What a person approves is what is shown: the terminal's tricks in the page, and answers that come too early.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseDiff } from '../../../crates/http/ui/js/text/diff.js';
import { go, readable } from '../lib/browser.mjs';
import { LONG_FILE, TRICKS } from '../lib/tricks.mjs';

/** Characters that hide or reorder text. The page may contain none of them. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\u{e0000}-\u{e0fff}]/u;

const textOf = (/** @type {any[]} */ lines) => lines.map(({ label, spans }) => (label ?? '') + spans.map(({ text }) => text).join(''));

/** @param {any} daemon @param {string} session */
const asked = (daemon, session) => daemon.until(`${session} asks`, async () => (await daemon.call('GET', `/approvals?session=${session}`)).items[0]);
/** @param {any} daemon @param {string} session */
const decided = async (daemon, session) => (await daemon.call('GET', `/sessions/${session}/events`)).items.find(({ type }) => type === 'approval.decided');

/** What the box of the question has on display. @param {any} box */
const rows = (box) => box.locator('.q-line').evaluateAll((/** @type {HTMLElement[]} */ lines) => lines.map((line) => ({ text: line.textContent, quoted: line.classList.contains('q-quoted'), shown: line.getClientRects().length > 0 })));

export async function everyTrickOfTheTerminalIsShownInThePage({ daemon, browser }) {
  const page = await browser.open(daemon, { hash: '#/approvals' });
  // The page may ask for a question that the test has just answered.
  browser.tabs.forEach((tab) => (tab.expected = /409/));
  for (const [n, { name, command, shows, raw }] of TRICKS.entries()) {
    const { session } = await daemon.session(`Trick ${n}`, `trick-${n}.`);
    const { approval, detail } = await asked(daemon, session);
    // Positive control: the text as such is a trick.
    assert.match(detail, raw, name);
    assert.ok(detail.includes(command), name);
    const { lines } = await daemon.call('GET', `/approvals/${approval}/question`);
    for (const [face, hash, box] of [['inbox', `#/approvals/${approval}`, '.question'], ['session', `#/session/${session}`, `.approval[data-approval="${approval}"]`]]) {
      await go(page, hash);
      const place = page.locator(box);
      await place.locator('.q-line', { hasText: 'end of the command' }).last().waitFor();
      await page.waitForFunction(([at, id]) => document.querySelector(at)?.textContent?.includes(id), [`${box} .q-lines`, approval.slice(-12)]);
      const shown = await rows(place);
      // The lines of the daemon, all of them, and nothing else.
      assert.deepEqual(shown.map(({ text }) => text), textOf(lines), `${name}, ${face}`);
      assert.deepEqual(shown.map(({ quoted }) => quoted), lines.map(({ quoted }) => quoted === true), `${name}, ${face}`);
      assert.ok(shown.every(({ shown: visible }) => visible), `${name}, ${face}: a line is not on display`);
      const told = shown.map(({ text }) => text).join('\n');
      for (const part of shows) assert.ok(told.includes(part), `${name}, ${face}: ${part} is not in\n${told}`);
      assert.ok(!HIDDEN.test(told.replaceAll('\n', '')), `${name}, ${face}`);
      // Our own lines are never quoted, and untrusted ones always are.
      assert.ok(shown.filter(({ text }) => command.split('\n').includes(text) && text !== '').every(({ quoted }, at, all) => quoted || (all.length > 1 && at === all.length - 1)), `${name}, ${face}`);
    }
    await daemon.call('POST', `/approvals/${approval}/decision`, { decision: 'deny' });
    await daemon.until('it is denied', () => decided(daemon, session));
  }
}

export async function aCommandThatLooksLikeADiffIsNoDiff({ daemon, browser }) {
  const at = TRICKS.findIndex(({ name }) => name === 'a diff');
  const { session } = await daemon.session('Diff', `trick-${at}.`);
  const { approval, detail } = await asked(daemon, session);
  // Positive control: a reader of diffs does not have the command that stands between the hunks.
  assert.ok(!JSON.stringify(parseDiff(detail)).includes('evil.example'));
  for (const hash of [`#/approvals/${approval}`, `#/session/${session}`]) {
    const page = await browser.open(daemon, { hash });
    await page.locator('.q-content', { hasText: 'echo evil.example' }).waitFor();
    assert.equal(await page.locator('.q-lines .q-added, .q-lines .q-removed, .question .diff, .approval .diff').count(), 0);
  }
}

export async function rightToLeftLettersStandInTheirOrder({ daemon, browser }) {
  const at = TRICKS.findIndex(({ name }) => name === 'right to left');
  const { session } = await daemon.session('Order', `trick-${at}.`);
  const { approval } = await asked(daemon, session);
  const page = await browser.open(daemon, { hash: `#/approvals/${approval}` });
  const line = page.locator('.q-content .q-text', { hasText: 'echo' });
  await line.waitFor();
  /** Where the letters stand, from left to right. */
  const order = () => line.evaluate((element) => {
    const node = element.firstChild;
    const places = [...(node?.textContent ?? '')].map((c, n) => {
      const range = document.createRange();
      range.setStart(node, n);
      range.setEnd(node, n + 1);
      return { c, left: range.getBoundingClientRect().left };
    });
    return places.sort((one, other) => one.left - other.left).map(({ c }) => c).join('');
  });
  const logical = await line.textContent();
  assert.equal(await order(), logical);
  // Positive control: without the rule, the browser reorders the digits between the letters.
  await line.evaluate((element) => element.style.setProperty('unicode-bidi', 'normal', 'important'));
  assert.notEqual(await order(), logical);
}

export async function yesDoesNotCountBeforeTheEnd({ daemon, browser }) {
  const { session, workdir } = await daemon.session('Write', 'write the long file');
  const { approval } = await asked(daemon, session);
  const page = await browser.open(daemon, { hash: `#/approvals/${approval}` });
  const box = page.locator('.question-body');
  await page.locator('.q-line').nth(50).waitFor();
  const allow = page.getByRole('button', { name: 'Allow once' });
  assert.equal(await allow.isDisabled(), true);
  await page.keyboard.press('y');
  await page.getByText('Not accepted: scroll through the whole question').first().waitFor();
  // A jump to the end does not show what lies between.
  const end = () => box.evaluate((element) => {
    element.scrollTop = element.scrollHeight;
    return element.scrollTop;
  });
  for (let last = -1, now = await end(); now !== last; now = await end()) last = now;
  await page.waitForFunction(() => document.querySelector('.q-lines')?.getBoundingClientRect().bottom <= innerHeight);
  await page.keyboard.press('y');
  assert.equal(await allow.isDisabled(), true);
  assert.equal(await decided(daemon, session), undefined);
  // Page by page, it does.
  await box.evaluate((element) => { element.scrollTop = 0; });
  await page.locator('.view-head').click();
  for (let pages = 0; pages < 400 && await allow.isDisabled(); pages += 1) {
    await page.keyboard.press(' ');
    await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
    if (await page.evaluate(() => document.querySelector('.q-lines')?.getBoundingClientRect().bottom <= innerHeight - 100)) await readable(page);
  }
  // More than the 1,500 lines that the page once showed.
  assert.equal(await page.locator('.q-added', { hasText: /^\+line \d+$/ }).count(), LONG_FILE.split('\n').length);
  await page.keyboard.press('y');
  const answer = await daemon.until('it is allowed', () => decided(daemon, session));
  assert.match(answer.basis.shown, /^[0-9a-f]{64}$/);
  await daemon.until('the file is there', async () => existsSync(join(workdir, 'long.txt')));
}

export async function anAnswerNamesWhatWasShown({ daemon, browser }) {
  const made = await Promise.all([1, 2, 3].map((n) => daemon.session(`Deploy ${n}`, 'deploy it')));
  const ids = await Promise.all(made.map(async ({ session }) => (await asked(daemon, session)).approval));
  const shown = await Promise.all(ids.map(async (id) => (await daemon.call('GET', `/approvals/${id}/question`)).shown));
  const refused = (/** @type {any} */ body) => daemon.call('POST', `/approvals/${ids[0]}/decision`, body).then(() => 'taken', (/** @type {Error} */ error) => /"code":"(\w+)"/.exec(error.message)?.[1]);
  assert.equal(await refused({ decision: 'allow' }), 'question_not_shown');
  assert.equal(await refused({ decision: 'allow', shown: shown[1] }), 'question_changed');
  assert.equal(await refused({ decision: 'allow', shown: '' }), 'question_changed');
  assert.equal(await refused({ decision: 'allow', shown: shown[0], policy: true }), 'shown_and_policy');
  assert.equal(existsSync(join(made[0].workdir, 'deployed.txt')), false);
  // Positive control: with the hash it counts, and a program says that it decides by policy.
  await daemon.call('POST', `/approvals/${ids[0]}/decision`, { decision: 'allow', shown: shown[0] });
  await daemon.call('POST', `/approvals/${ids[1]}/decision`, { decision: 'allow', policy: true });
  assert.deepEqual((await daemon.until('it is allowed', () => decided(daemon, made[0].session))).basis, { shown: shown[0] });
  assert.equal((await daemon.until('it is allowed', () => decided(daemon, made[1].session))).basis, 'policy');
  // The page answers with another question's hash: refused, and it shows the question again.
  const page = await browser.open(daemon, { hash: `#/approvals/${ids[2]}` });
  await page.route(`**/approvals/${ids[2]}/question`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...await response.json(), shown: shown[0] } });
  }, { times: 1 });
  await page.reload();
  await page.waitForSelector('.connection[data-kind="live"]');
  await readable(page);
  browser.tabs.forEach((tab) => (tab.expected = /409/));
  await page.keyboard.press('y');
  await page.getByText('is not the one that was shown').waitFor();
  assert.equal(await decided(daemon, made[2].session), undefined);
  await readable(page);
  await page.keyboard.press('y');
  await page.getByText('Nothing waits for you.').waitFor();
}
