/**
 * `npm run screenshots`: takes screenshots of the dashboard and writes them to docs/screenshots. The demo has a fixed
 * seed and a fixed time, so the same code produces the same screenshots with the same browser. The command fails if a
 * page does not show the expected text.
 */
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { describeError } from '../src/printing/escape.ts';
import { launchChromium } from '../test/rig/chromium.ts';
import { type Demo, startDemo } from './demo.ts';

const SCREENSHOTS_FOLDER = fileURLToPath(new URL('../docs/screenshots', import.meta.url));
const NOW = Date.UTC(2026, 10, 20, 14, 32);
const SEED = 1;
const DESKTOP_VIEWPORT = { width: 1280, height: 800 };
const PHONE_VIEWPORT = { width: 360, height: 740 };
const WEBP_QUALITY = 0.9;
/** The position of the pointer over a chart, as a share of the width of the chart. */
const HOVER_SHARE = 0.8;
/** The maximum size of all screenshots together, which limits the size of the repository. */
const MAX_TOTAL_BYTES = 1_500_000;

const getFileName = (name: string): string => `${name}.webp`;

interface Screenshot {
  readonly name: string;
  /** The path of the page, or a function that finds the path through the API. */
  readonly path: string | ((getJson: GetJson) => Promise<string>);
  /** A text that the page must show before the screenshot is taken. */
  readonly text: string | RegExp;
  /** A text that the `iframe` of the page must show before the screenshot is taken. */
  readonly frameText?: string;
  /** The text of an element that is clicked before the screenshot, such as the title of a collapsed section. */
  readonly clickedText?: string | RegExp;
  /** The accessible name of the chart over which the pointer is placed before the screenshot. */
  readonly hoveredChart?: RegExp;
  /** The height in px; by default the height of `DESKTOP_VIEWPORT`. */
  readonly height?: number;
  readonly isDark?: boolean;
  readonly isPhone?: boolean;
}

type GetJson = <T>(path: string) => Promise<T>;

interface MessageList {
  readonly messages: readonly { readonly id: string; readonly subject: string }[];
}
interface MessageDetails {
  readonly id: string;
  readonly attempts: readonly { readonly outcome: string; readonly reason: string | null }[];
}

const SCREENSHOTS: readonly Screenshot[] = [
  { name: 'overview', path: '/', text: 'marketplace', hoveredChart: /^Outcomes: /, height: 1_240 },
  { name: 'overview-dark', path: '/', text: 'marketplace', isDark: true, height: 1_240 },
  { name: 'overview-phone', path: '/', text: 'marketplace', isPhone: true },
  { name: 'messages', path: '/messages?state=bounced', text: 'bounced' },
  { name: 'message', path: findGreylistedMessage, text: 'Greylisted', clickedText: /^SMTP transcript/, height: 1_150 },
  { name: 'message-dark', path: findGreylistedMessage, text: 'Greylisted', isDark: true },
  { name: 'message-phone', path: findGreylistedMessage, text: 'Greylisted', isPhone: true },
  { name: 'deliverability', path: '/deliverability', text: 'Microsoft', height: 1_100 },
  { name: 'deliverability-phone', path: '/deliverability?by=account', text: 'marketplace', isPhone: true },
  { name: 'inbox', path: findOrderInInbox, text: /^Your order/, frameText: 'Total' },
  { name: 'account', path: '/accounts/marketplace', text: /hard bounces/i },
  { name: 'domain', path: '/domains/market.example', text: /_domainkey/, height: 1_000 },
  { name: 'suppressions-dark', path: '/suppressions?list=shop', text: 'hard bounce', isDark: true },
  { name: 'providers', path: '/providers', text: 'Postmark' },
  { name: 'health', path: '/health', text: /database/i },
];

async function findGreylistedMessage(getJson: GetJson): Promise<string> {
  const { messages } = await getJson<MessageList>('/messages?state=delivered&limit=200');
  for (const { id } of messages) {
    const { attempts } = await getJson<MessageDetails>(`/messages/${id}`);
    if (attempts[0]?.reason === 'greylisted' && attempts.at(-1)?.outcome === 'delivered') return `/messages/${id}`;
  }
  throw new Error('no message was greylisted and then delivered; set another SEED');
}

async function findOrderInInbox(getJson: GetJson): Promise<string> {
  const { messages } = await getJson<MessageList>('/inbox');
  const orderMessage = messages.find(({ subject }) => /^Your order [0-9]+$/.test(subject));
  if (orderMessage === undefined) throw new Error('the inbox contains no order; set another SEED');
  return `/inbox/${orderMessage.id}`;
}

/** Creates a browser context that is signed in. */
async function signIn(browser: Browser, demo: Demo): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: demo.service.operatorUrl ?? '' });
  const page = await context.newPage();
  await page.goto(demo.service.signInUrl ?? '/');
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  await page.close();
  return context;
}

async function takeScreenshot(
  browser: Browser,
  signedInContext: BrowserContext,
  screenshot: Screenshot,
  baseUrl: string,
): Promise<void> {
  const {
    name,
    path,
    text,
    frameText,
    clickedText,
    hoveredChart,
    height = DESKTOP_VIEWPORT.height,
    isDark,
    isPhone,
  } = screenshot;
  const context = await browser.newContext({
    baseURL: baseUrl,
    viewport: isPhone === true ? PHONE_VIEWPORT : { ...DESKTOP_VIEWPORT, height },
    deviceScaleFactor: 1,
    colorScheme: isDark === true ? 'dark' : 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    storageState: await signedInContext.storageState(),
  });
  try {
    const page = await context.newPage();
    await page.clock.setFixedTime(NOW);
    const getJson: GetJson = async (apiPath) => {
      const { origins } = await signedInContext.storageState();
      const secret = origins[0]?.localStorage.find(({ name: key }) => key === 'postrider-session')?.value ?? '';
      const response = await signedInContext.request.get(`${baseUrl}/api/v1${apiPath}`, {
        headers: { 'Postrider-Session': secret },
      });
      if (!response.ok()) throw new Error(`${apiPath}: ${response.status()} ${await response.text()}`);
      return (await response.json()) as never;
    };
    await page.goto(typeof path === 'string' ? path : await path(getJson));
    await waitForText(page, name, text);
    if (frameText !== undefined) await page.frameLocator('iframe').getByText(frameText).waitFor();
    if (clickedText !== undefined) await page.getByText(clickedText).first().click();
    if (hoveredChart !== undefined) await movePointerOverChart(page, hoveredChart);
    const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    writeFileSync(join(SCREENSHOTS_FOLDER, getFileName(name)), await convertToWebp(context, png));
  } finally {
    await context.close();
  }
}

/** Moves the pointer over the chart, so that its tooltip is shown. */
async function movePointerOverChart(page: Page, chartName: RegExp): Promise<void> {
  const chart = page.getByRole('img', { name: chartName });
  const bounds = await chart.boundingBox();
  if (bounds === null)
    throw new Error(`the page has no chart with the name ${String(chartName)}; correct hoveredChart`);
  await page.mouse.move(bounds.x + bounds.width * HOVER_SHARE, bounds.y + bounds.height / 2);
  await page.locator('.chart-tip').waitFor();
}

/** Converts a PNG file to WebP. The WebP file is less than half as large as the PNG file. */
async function convertToWebp(context: BrowserContext, png: Buffer): Promise<Buffer> {
  const page = await context.newPage();
  // The expression runs in the browser. The expression is a string, because the types of the browser, such as `Image`,
  // are not available in this file.
  const dataUrl = await page.evaluate<string>(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${png.toString('base64')}';
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.naturalWidth;
    canvas.height = image.naturalHeight;
    canvas.getContext('2d').drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', ${WEBP_QUALITY});
  })()`);
  await page.close();
  return Buffer.from(dataUrl.slice(dataUrl.indexOf(',') + 1), 'base64');
}

/** Waits until the page shows the text and no longer shows that it is loading. */
async function waitForText(page: Page, name: string, text: string | RegExp): Promise<void> {
  try {
    await page.getByRole('main').getByText(text).filter({ visible: true }).first().waitFor({ timeout: 20_000 });
    await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached', timeout: 5_000 });
  } catch (error) {
    throw new Error(`${name}: the page does not show ${String(text)}: ${describeError(error)}`);
  }
}

async function takeScreenshots(): Promise<void> {
  const anyPort = '127.0.0.1:0';
  const demo = await startDemo(
    { listen: anyPort, operatorListen: anyPort, seed: SEED, now: NOW, hasLiveTraffic: false },
    () => undefined,
  );
  try {
    await demo.history;
    const browser = await launchChromium();
    try {
      rmSync(SCREENSHOTS_FOLDER, { recursive: true, force: true });
      mkdirSync(SCREENSHOTS_FOLDER, { recursive: true });
      const signedInContext = await signIn(browser, demo);
      for (const screenshot of SCREENSHOTS)
        await takeScreenshot(browser, signedInContext, screenshot, demo.service.operatorUrl ?? '');
    } finally {
      await browser.close();
    }
  } finally {
    await demo.stop();
  }
  const sizes = SCREENSHOTS.map(({ name }) => ({
    name,
    bytes: statSync(join(SCREENSHOTS_FOLDER, getFileName(name))).size,
  }));
  const totalBytes = sizes.reduce((sum, file) => sum + file.bytes, 0);
  for (const file of sizes) process.stdout.write(`${file.name.padEnd(20)} ${String(file.bytes).padStart(8)}\n`);
  if (totalBytes > MAX_TOTAL_BYTES)
    throw new Error(
      `the total size of the screenshots is ${totalBytes} bytes; the limit is ${MAX_TOTAL_BYTES}; remove a screenshot or reduce WEBP_QUALITY`,
    );
}

takeScreenshots().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`screenshots: ${describeError(error)}\n`);
    process.exit(1);
  },
);
