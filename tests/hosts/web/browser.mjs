// A headless chromium, spoken to by its own protocol over two pipes, and a server of files for it.

import { spawn } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };

/** Serves a folder on a port of the system's choice: { url, close }. */
export async function serve(folder) {
  const server = createServer((request, response) => {
    const path = normalize(join(folder, decodeURIComponent(new URL(request.url, 'http://x').pathname)));
    const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
    if (!file.startsWith(folder) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export class Browser {
  #process;
  #profile = mkdtempSync(join(tmpdir(), 'exphil-web-'));
  #wanted = new Map();
  #number = 0;
  #page;
  /** What pages complained of. */
  complaints = [];

  static async start(program) {
    const browser = new Browser();
    browser.#process = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe',
      `--user-data-dir=${browser.#profile}`, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    let rest = '';
    browser.#process.stdio[4].setEncoding('utf8').on('data', (text) => {
      const parts = (rest + text).split('\0');
      rest = parts.pop();
      parts.forEach((part) => browser.#hear(JSON.parse(part)));
    });
    browser.#process.on('exit', () => browser.#wanted.forEach(({ reject }) => reject(new Error('the browser has ended'))));
    const { targetInfos } = await browser.#ask('Target.getTargets');
    const { targetId } = targetInfos.find(({ type }) => type === 'page');
    browser.#page = (await browser.#ask('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log']) await browser.tell(`${domain}.enable`);
    return browser;
  }
  #hear({ id, error, result, method, params }) {
    const wanted = this.#wanted.get(id);
    if (wanted) {
      this.#wanted.delete(id);
      return error ? wanted.reject(new Error(error.message)) : wanted.resolve(result);
    }
    if (method === 'Runtime.exceptionThrown') this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Log.entryAdded' && params.entry.level === 'error') this.complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`);
  }
  #ask(method, params = {}, sessionId = undefined) {
    return new Promise((resolve, reject) => {
      this.#wanted.set(++this.#number, { resolve, reject });
      this.#process.stdio[3].write(`${JSON.stringify({ id: this.#number, method, params, sessionId })}\0`);
    });
  }
  /** A command to the page. */
  tell(method, params) {
    return this.#ask(method, params, this.#page);
  }
  /** The value of an expression in the page; promises are awaited. */
  async value(expression) {
    const { result, exceptionDetails } = await this.tell('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  open(url) {
    return this.tell('Page.navigate', { url });
  }
  /** Waits until an expression is true in the page. */
  async until(expression, what, seconds = 600) {
    for (let i = 0; i < seconds * 10; i++) {
      if (await this.value(expression).catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`after ${seconds} s: not ${what}; ${this.complaints.join('; ')}`);
  }
  async look(width, height, dark, mobile = false) {
    await this.tell('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: mobile ? 2 : 1, mobile });
    await this.tell('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
  }
  async picture() {
    const { data } = await this.tell('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true });
    return Buffer.from(data, 'base64');
  }
  async close() {
    const ended = new Promise((resolve) => this.#process.on('exit', resolve));
    this.#process.kill();
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}
