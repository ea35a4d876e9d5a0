// Thousands of sessions.

import assert from 'node:assert/strict';

const SESSIONS = Number(process.env.AGENTD_PAGE_SESSIONS ?? 5000);
/** What the page reads at first. */
const READ = 5000;
const FRAMES = 120;
const CHANGES = 1000;

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
  // Of more than these, the page reads the rest when the table is scrolled there.
  const count = (/** @type {number} */ n) => n.toLocaleString('en-US');
  const whole = SESSIONS > READ ? ` of ${count(SESSIONS)}` : `${count(SESSIONS)} sessions`;
  const showing = (/** @type {any} */ on, /** @type {string} */ text) => on.waitForFunction((/** @type {string} */ wanted) => document.querySelector('.shown')?.textContent?.includes(wanted), text);
  const opened = async (/** @type {string} */ how) => {
    const page = await browser.open(daemon);
    await showing(page, whole);
    const { paint, rows, asked } = await page.evaluate(() => ({
      paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
      rows: performance.getEntriesByName('agentd:rows')[0]?.startTime ?? 0,
      asked: performance.getEntriesByType('resource').filter(({ name }) => /\/v1\/(sign-in|sessions)/.test(name)).slice(0, 2).map(({ name, startTime, responseEnd }) => `${name.replace(/.*\/v1|\?.*/g, '')} from ${Math.round(startTime)} to ${Math.round(responseEnd)} ms`),
    }));
    note(`${SESSIONS} sessions, ${how}: first paint after ${Math.round(paint)} ms, first rows after ${Math.round(rows)} ms; ${asked.join(', ')}`);
    return page;
  };
  // The second window has nothing from the first in its cache, but finds the browser's processes running, as a person's does.
  await (await opened('first window of the browser')).context().close();
  const page = await opened('another window');
  const shows = (/** @type {string} */ text) => showing(page, text);
  const inDocument = () => page.locator('.rows .line').count();
  assert.ok(await inDocument() < 100, 'only the rows in sight are in the document');
  await page.evaluate(() => performance.clearMeasures());
  for (const name of ['Session', 'Cost', 'State', 'Tokens']) await page.getByRole('button', { name, exact: true }).click();
  await page.keyboard.press('/');
  await page.keyboard.type('batch=7');
  await shows(`${SESSIONS / 50} of`);
  await page.locator('.filter').fill('');
  await shows(SESSIONS > READ ? '' : whole);
  const orders = await page.evaluate(() => performance.getEntriesByName('agentd:order').map(({ duration }) => duration).sort((a, b) => a - b));
  note(`filter and sort: ${orders.length} times, median ${orders[Math.floor(orders.length / 2)].toFixed(1)} ms, worst ${orders.at(-1).toFixed(1)} ms`);
  // Processor time of script, style and layout per frame: other programs and painting do not count.
  const profiler = await page.context().newCDPSession(page);
  await profiler.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => {
    const { metrics } = await profiler.send('Performance.getMetrics');
    return metrics.filter(({ name }) => ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'].includes(name)).reduce((sum, { value }) => sum + value, 0) * 1000;
  };
  const before = await spent();
  await page.evaluate(async (frames) => {
    const table = document.querySelector('.fleet-table');
    for (let n = 0; n < frames; n += 1) {
      // As fast as a wheel turns.
      table.scrollTop = n * 120;
      await new Promise(requestAnimationFrame);
    }
  }, FRAMES);
  note(`scrolling: ${((await spent() - before) / FRAMES).toFixed(2)} ms of script, style and layout per frame`);
  assert.ok(await inDocument() < 100, 'rows are reused');

  // A flood of changes leaves nothing behind.
  const { items } = await daemon.call('GET', '/sessions?limit=20');
  const heap = async () => {
    await profiler.send('HeapProfiler.collectGarbage');
    return (await profiler.send('Runtime.getHeapUsage')).usedSize;
  };
  const flood = async (/** @type {string} */ word) => {
    await Promise.all(items.map(async (/** @type {any} */ { session }, /** @type {number} */ at) => {
      for (let n = 1; n <= CHANGES / items.length; n += 1) await daemon.call('PATCH', `/sessions/${session}`, { title: `${word} ${at} of ${n}` });
    }));
    await page.locator('.rows').getByText(`${word} 0 of ${CHANGES / items.length}`).waitFor();
  };
  await page.goto(`${daemon.url}/ui/#/fleet`);
  await page.locator('.fleet-table').evaluate((table) => {
    table.scrollTop = 0;
  });
  await flood('first');
  const early = await heap();
  await flood('second');
  const late = await heap();
  note(`memory after ${CHANGES} and ${2 * CHANGES} changes: ${(early / 1e6).toFixed(1)} MB, ${(late / 1e6).toFixed(1)} MB`);
  assert.ok(late < early + 10e6, 'changes of the same sessions cost no memory');
}
