// A daemon with scratch data and a scripted model.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { conversations } from './tricks.mjs';

const FIXTURE = join(dirname(fileURLToPath(import.meta.url)), '..', 'fixture');
const run = promisify(execFile);

export class Daemon {
  /**
   * @param {{agentd: string, agentctl: string}} programs
   * @param {string[]} [args] further arguments of agentd
   */
  static async start(programs, args = []) {
    const daemon = new Daemon();
    daemon.args = args;
    daemon.programs = programs;
    daemon.dir = await mkdtemp(join(tmpdir(), 'agentd-page-'));
    daemon.socket = join(daemon.dir, 'agentd.sock');
    daemon.address = '127.0.0.1:0';
    daemon.made = 0;
    const config = await readFile(join(FIXTURE, 'agentd.toml'), 'utf8');
    const script = await readFile(join(FIXTURE, 'script.toml'), 'utf8');
    await writeFile(join(daemon.dir, 'script.toml'), script + conversations());
    await writeFile(join(daemon.dir, 'agentd.toml'), config.replaceAll('SCRIPT', join(daemon.dir, 'script.toml')));
    await daemon.launch();
    daemon.token = await daemon.makeToken('tests', 'read,steer,approve,import,admin');
    return daemon;
  }

  /** Starts the program; a second time at the same address. */
  async launch() {
    const env = { PATH: process.env.PATH, HOME: this.dir, XDG_RUNTIME_DIR: this.dir, XDG_CONFIG_HOME: join(this.dir, 'config'), XDG_DATA_HOME: join(this.dir, 'share') };
    const args = [...this.args, '--config', join(this.dir, 'agentd.toml'), '--data-dir', join(this.dir, 'data'), '--socket', this.socket, '--http', this.address];
    this.child = spawn(this.programs.agentd, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.said = '';
    const ready = new Promise((resolve, reject) => {
      const hear = (bytes) => {
        this.said += bytes;
        const address = /http:\s+http:\/\/(\S+)/.exec(this.said)?.[1];
        if (address && this.said.includes('agentd ready') && /data:/.test(this.said)) resolve(address);
      };
      this.child.stdout.on('data', hear);
      this.child.stderr.on('data', hear);
      this.child.once('exit', (code) => reject(new Error(`agentd ended with ${code}:\n${this.said}`)));
      this.child.once('error', reject);
    });
    this.address = await ready;
    this.url = `http://${this.address}`;
  }

  /** Ends it as a crash does. */
  async kill() {
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }

  /** Ends it at once: a polite end waits for running calls, and their processes die with the daemon anyway. */
  async end() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** @param {...string} args */
  async ctl(...args) {
    const { stdout } = await run(this.programs.agentctl, ['--socket', this.socket, ...args], { env: { PATH: process.env.PATH, HOME: this.dir } });
    return stdout;
  }

  /** @param {string} name @param {string} scopes */
  async makeToken(name, scopes) {
    const said = await this.ctl('token', 'create', name, '--scope', scopes, '--dir', '/', '--mode', 'yolo');
    return /agentd_\w+/.exec(said)[0];
  }

  /** A link that signs a browser in. @param {string} [scopes] */
  async link(scopes = 'read,steer,approve,import,admin') {
    const said = await this.ctl('open', '--scope', scopes);
    return /http\S+#code=\S+/.exec(said)[0];
  }

  /** @param {string} verb @param {string} path @param {any} [body] */
  async call(verb, path, body) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const response = await fetch(`${this.url}/v1${path}`, { method: verb, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${verb} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  /**
   * Creates a session in a directory of its own.
   * @param {string} title
   * @param {string} [prompt] the scripted model's conversation; absent: the session is idle
   * @param {Record<string, any>} [more]
   */
  async session(title, prompt, more = {}) {
    const workdir = join(this.dir, 'work', String((this.made += 1)));
    await mkdir(workdir, { recursive: true });
    await writeFile(join(workdir, 'greet.sh'), '#!/bin/sh\n# Greets somebody by name.\nname=${1:-world}\nprintf \'Helo, %s\\n\' "$name"\n');
    await writeFile(join(workdir, 'deploy.sh'), '#!/bin/sh\necho deploy\n');
    const { session } = await this.call('POST', '/sessions', { title, workdir, mode: 'default', ...(prompt ? { prompt } : {}), ...more });
    return { session, workdir };
  }

  /** Waits until the daemon says so. @param {string} what @param {() => Promise<any>} ask */
  async until(what, ask) {
    const end = Date.now() + 120_000;
    while (Date.now() < end) {
      const answer = await ask().catch(() => null);
      if (answer) return answer;
      await new Promise((next) => setTimeout(next, 50));
    }
    throw new Error(`it did not happen: ${what}`);
  }
}

/** A fleet with a session in each state. @param {Daemon} daemon */
export async function fleet(daemon) {
  const support = { team: 'support' };
  for (let n = 1; n <= 12; n += 1) await daemon.session(`Answer question ${n}`, `hello ${n}`, { labels: support });
  for (let n = 1; n <= 6; n += 1) await daemon.session(`Read the log of web-${n}`, `slow ${n}`, { labels: { team: 'ops' } });
  for (let n = 1; n <= 3; n += 1) await daemon.session(`Build service ${n}`, 'build it', { mode: 'yolo', labels: { team: 'web', kind: 'build' } });
  for (let n = 1; n <= 4; n += 1) await daemon.session(`Summarise tickets, batch ${n}`, `limited ${n}`, { model: 'crowded', labels: support });
  await daemon.session('Describe the screenshots', 'broken', { labels: { team: 'web' } });
  await daemon.session('Release 2.4 in parts', 'parts', { mode: 'yolo', labels: { team: 'infra', release: '2.4' } });
  await daemon.session('New bucket for the reports', 'which region', { labels: { team: 'data' } });
  const edit = await daemon.session('Repair the greeting', 'repair greet.sh', { labels: { team: 'web' } });
  const deploy = await daemon.session('Deploy production, EU', 'deploy production', { labels: { team: 'infra', env: 'prod' } });
  const hostile = await daemon.session('<script>window.hacked = 1</script> \u202egnp.exe', 'hostile', { labels: { x: '<b>' } });
  await daemon.until('five approvals are open', async () => (await daemon.call('GET', '/approvals')).items.length >= 4);
  return { edit, deploy, hostile };
}
