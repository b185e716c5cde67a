/**
 * `npm run screenshots`: pictures of the real pages into docs/screenshots, out of the demo with a fixed seed at a fixed time, so
 * that the same code makes the same pictures as far as a browser does. Fails where a page does not show what it is taken for.
 */
import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { describeError } from '../src/printing/error-line.ts';
import { launchChromium } from '../test/rig/chromium.ts';
import { type Demo, startDemo } from './demo.ts';

const FOLDER = fileURLToPath(new URL('../docs/screenshots', import.meta.url));
const NOW = Date.UTC(2026, 10, 20, 14, 32);
const SEED = 1;
const DESK = { width: 1280, height: 800 };
const PHONE = { width: 360, height: 740 };
/** All of them together: a clone must not grow by its pictures. */
const MOST_BYTES = 1_500_000;

interface Picture {
  readonly name: string;
  /** Its address, or how to find it by the API. */
  readonly at: string | ((ask: Ask) => Promise<string>);
  /** A text that the page must show before the picture is taken. */
  readonly shows: string | RegExp;
  /** A text that a frame in it must show as well. */
  readonly frames?: string;
  /** What is clicked then: a fold that holds the point of the picture. */
  readonly opens?: string | RegExp;
  /** Of the picture; a screen's unless given. */
  readonly height?: number;
  readonly dark?: boolean;
  readonly phone?: boolean;
}

type Ask = <T>(path: string) => Promise<T>;

interface Found {
  readonly messages: readonly { readonly id: string; readonly subject: string }[];
}
interface Details {
  readonly id: string;
  readonly attempts: readonly { readonly outcome: string; readonly reason: string | null }[];
}

const PICTURES: readonly Picture[] = [
  { name: 'overview', at: '/', shows: 'marketplace', height: 1_400 },
  { name: 'overview-dark', at: '/?range=7d', shows: 'marketplace', dark: true },
  { name: 'overview-phone', at: '/', shows: 'marketplace', phone: true },
  { name: 'messages', at: '/messages?state=bounced', shows: 'bounced' },
  { name: 'message', at: greylistedThenDelivered, shows: 'Greylisted', opens: /^SMTP transcript/, height: 1_150 },
  { name: 'message-phone', at: greylistedThenDelivered, shows: 'Greylisted', phone: true },
  { name: 'inbox', at: orderInInbox, shows: /^Your order/, frames: 'Total' },
  { name: 'account', at: '/accounts/marketplace', shows: /hard bounces/i, height: 1_100 },
  { name: 'domain', at: '/domains/market.example', shows: /_domainkey/ },
  { name: 'suppressions-dark', at: '/suppressions?list=shop', shows: 'complaint', dark: true },
];

async function greylistedThenDelivered(ask: Ask): Promise<string> {
  const { messages } = await ask<Found>('/messages?state=delivered&limit=200');
  for (const { id } of messages) {
    const { attempts } = await ask<Details>(`/messages/${id}`);
    if (attempts[0]?.reason === 'greylisted' && attempts.at(-1)?.outcome === 'delivered') return `/messages/${id}`;
  }
  throw new Error('no message was greylisted and then delivered');
}

async function orderInInbox(ask: Ask): Promise<string> {
  const { messages } = await ask<Found>('/inbox');
  const order = messages.find(({ subject }) => /^Your order [0-9]+$/.test(subject));
  if (order === undefined) throw new Error('no order is in the inbox');
  return `/inbox/${order.id}`;
}

/** A context that has signed in, with the demo's time. */
async function signedIn(browser: Browser, demo: Demo): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: demo.service.operatorUrl ?? '' });
  const page = await context.newPage();
  await page.goto(demo.service.signInUrl ?? '/');
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  await page.close();
  return context;
}

async function take(browser: Browser, signed: BrowserContext, picture: Picture, home: string): Promise<void> {
  const { name, at, shows, frames, opens, height = DESK.height, dark, phone } = picture;
  const context = await browser.newContext({
    baseURL: home,
    viewport: phone === true ? PHONE : { ...DESK, height },
    deviceScaleFactor: 1,
    colorScheme: dark === true ? 'dark' : 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    storageState: await signed.storageState(),
  });
  try {
    const page = await context.newPage();
    await page.clock.setFixedTime(NOW);
    const ask: Ask = async (path) => {
      const { origins } = await signed.storageState();
      const secret = origins[0]?.localStorage.find(({ name: one }) => one === 'postrider-session')?.value ?? '';
      const answer = await signed.request.get(`${home}/api/v1${path}`, { headers: { 'Postrider-Session': secret } });
      if (!answer.ok()) throw new Error(`${path}: ${answer.status()} ${await answer.text()}`);
      return (await answer.json()) as never;
    };
    await page.goto(typeof at === 'string' ? at : await at(ask));
    await shown(page, name, shows);
    if (frames !== undefined) await page.frameLocator('iframe').getByText(frames).waitFor();
    if (opens !== undefined) await page.getByText(opens).first().click();
    await page.screenshot({ path: join(FOLDER, `${name}.png`), animations: 'disabled', caret: 'hide' });
  } finally {
    await context.close();
  }
}

/** Waits for the text, and for what is still being loaded. */
async function shown(page: Page, name: string, text: string | RegExp): Promise<void> {
  try {
    await page.getByRole('main').getByText(text).filter({ visible: true }).first().waitFor({ timeout: 20_000 });
    await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached', timeout: 5_000 });
  } catch (error) {
    throw new Error(`${name}: the page does not show ${String(text)}: ${describeError(error)}`);
  }
}

async function run(): Promise<void> {
  const anywhere = '127.0.0.1:0';
  const demo = await startDemo(
    { listen: anywhere, operatorListen: anywhere, seed: SEED, now: NOW, live: false },
    () => undefined,
  );
  try {
    await demo.filled;
    const browser = await launchChromium();
    try {
      rmSync(FOLDER, { recursive: true, force: true });
      mkdirSync(FOLDER, { recursive: true });
      const signed = await signedIn(browser, demo);
      for (const picture of PICTURES) await take(browser, signed, picture, demo.service.operatorUrl ?? '');
    } finally {
      await browser.close();
    }
  } finally {
    await demo.stop();
  }
  const sizes = PICTURES.map(({ name }) => ({ name, bytes: statSync(join(FOLDER, `${name}.png`)).size }));
  const bytes = sizes.reduce((sum, one) => sum + one.bytes, 0);
  for (const one of sizes) process.stdout.write(`${one.name.padEnd(20)} ${String(one.bytes).padStart(8)}\n`);
  if (bytes > MOST_BYTES) throw new Error(`the pictures have ${bytes} bytes; ${MOST_BYTES} is the most`);
}

run().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`screenshots: ${describeError(error)}\n`);
    process.exit(1);
  },
);
