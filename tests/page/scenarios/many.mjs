// Thousands of sessions.

import assert from 'node:assert/strict';

const SESSIONS = Number(process.env.AGENTD_PAGE_SESSIONS ?? 5000);

export async function thousandsOfSessionsStayQuick({ daemon, browser, note }) {
  let made = 1;
  const { workdir } = await daemon.session('Session 0');
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (made < SESSIONS) {
      made += 1;
      const labels = { team: ['web', 'infra', 'data', 'ops'][made % 4], batch: String(made % 50) };
      await daemon.call('POST', '/sessions', { title: `Session ${made}`, workdir, labels });
    }
  }));
  const page = await browser.open(daemon);
  await page.waitForFunction((count) => document.querySelector('.shown')?.textContent === `${count} sessions`, SESSIONS.toLocaleString('en-US'));
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0);
  note(`first paint after ${Math.round(paint)} ms, ${SESSIONS} sessions`);
  const inDocument = () => page.locator('.rows .line').count();
  assert.ok(await inDocument() < 100, 'only the rows in sight are in the document');
  await page.evaluate(() => performance.clearMeasures());
  for (const name of ['Session', 'Cost', 'State', 'Tokens']) await page.getByRole('button', { name, exact: true }).click();
  await page.keyboard.press('/');
  await page.keyboard.type('batch=7');
  await page.waitForFunction((count) => document.querySelector('.shown')?.textContent?.startsWith(`${count} of`), String(SESSIONS / 50));
  await page.locator('.filter').fill('');
  await page.waitForFunction((count) => document.querySelector('.shown')?.textContent === `${count} sessions`, SESSIONS.toLocaleString('en-US'));
  const orders = await page.evaluate(() => performance.getEntriesByName('agentd:order').map(({ duration }) => duration).sort((a, b) => a - b));
  note(`filter and sort: ${orders.length} times, median ${orders[Math.floor(orders.length / 2)].toFixed(1)} ms, worst ${orders.at(-1).toFixed(1)} ms`);
  const scroll = await page.evaluate(async () => {
    const table = document.querySelector('.fleet-table');
    const times = [];
    for (let n = 0; n < 120; n += 1) {
      table.scrollTop = (n * 997) % table.scrollHeight;
      await new Promise(requestAnimationFrame);
      const started = performance.now();
      table.dispatchEvent(new Event('scroll'));
      await new Promise(requestAnimationFrame);
      void table.offsetHeight;
      times.push(performance.now() - started);
    }
    return times.sort((a, b) => a - b);
  });
  note(`a frame of scrolling: median ${scroll[60].toFixed(1)} ms, worst ${scroll.at(-1).toFixed(1)} ms, waiting for the frame included`);
  assert.ok(await inDocument() < 100, 'rows are reused');
}
