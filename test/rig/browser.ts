/**
 * Opens browsers for operators, with one Chromium per test file and one context per operator of a test. A test fails if
 * a page causes a fault: an error in the console, an exception, a violation of its content security policy, a dialog, a
 * new window, or a request to another server.
 */
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  ConsoleMessage,
  Locator,
  Page,
  Request,
  Route,
} from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished } from 'vitest';
import { launchChromium } from './chromium.ts';
import { type SessionHeaders, signInByLink } from './session.ts';

/** The members of a service that a browser test uses. */
export interface BrowsedService {
  readonly operatorUrl: string;
  /** Returns the output of `serve --json`, whose first line contains the sign-in link. */
  readonly stdout: () => string;
}

export interface OperatorOptions {
  /** Width of the window in CSS pixels; the default is the width of a desktop window. */
  readonly width?: number;
  readonly dark?: boolean;
  readonly reducedMotion?: boolean;
  /** Locale of the browser; the default is British English. */
  readonly locale?: string;
}

export interface BrowserUser {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Opens a path of the service, such as `/messages?state=queued`, and waits for the heading of the page. */
  visit(path: string): Promise<void>;
  /** Allows console lines that the test causes on purpose. */
  allowFaults(...lines: readonly RegExp[]): void;
  /** Returns the faults of the pages so far. The test fails at its end if the list is not empty. */
  listFaults(): readonly string[];
}

export interface BrowserRig {
  /** Allows all faults of the open browsers; only for the tests of this rig. */
  clearFaults(): void;
  /** Opens a browser without a session. */
  openSignedOut(service: BrowsedService, options?: OperatorOptions): Promise<BrowserUser>;
  /** Opens a browser with a session from the sign-in link of the service, and visits the path. */
  openSignedIn(service: BrowsedService, path: string, options?: OperatorOptions): Promise<BrowserUser>;
  /** Calls the operator API. @throws Error with the response if its status is not 2xx */
  callApi<T>(service: BrowsedService, method: string, path: string, body?: object): Promise<T>;
}

const TIMEOUT_MS = 120_000;
const DESKTOP_VIEWPORT = { width: 1280, height: 900 };
const PHONE_HEIGHT = 780;

/** Creates the browser rig of a test file. The test file calls this function once, at the top. */
export function createBrowserRig(): BrowserRig {
  let browser: Browser;
  let openBrowsers: WatchedContext[] = [];
  // The sign-in link is valid for one sign-in, so all browsers of this test file share one session.
  const sessions = new Map<string, Promise<SessionHeaders>>();
  const getSession = (service: BrowsedService) => {
    const session = sessions.get(service.operatorUrl) ?? signInByLink(findSignInLink(service));
    sessions.set(service.operatorUrl, session);
    return session;
  };
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
  });
  afterEach(async () => {
    const watchedContexts = openBrowsers;
    openBrowsers = [];
    await Promise.all(watchedContexts.map(({ context }) => context.close()));
    expect(
      watchedContexts.flatMap(({ listFaults }) => listFaults()),
      'faults of the pages',
    ).toEqual([]);
  });

  async function openBrowser(
    service: BrowsedService,
    { width, dark, reducedMotion, locale }: OperatorOptions = {},
    session: SessionHeaders | null = null,
  ): Promise<BrowserUser> {
    const options: BrowserContextOptions = {
      baseURL: service.operatorUrl,
      viewport: width === undefined ? DESKTOP_VIEWPORT : { width, height: PHONE_HEIGHT },
      colorScheme: dark === true ? 'dark' : 'light',
      reducedMotion: reducedMotion === true ? 'reduce' : 'no-preference',
      locale: locale ?? 'en-GB',
      ...(session === null ? {} : { storageState: toStorageState(service.operatorUrl, session) }),
    };
    const context = await browser.newContext(options);
    context.setDefaultTimeout(TIMEOUT_MS);
    const page = await context.newPage();
    const watchedContext = watchContext(context, page, service.operatorUrl);
    openBrowsers.push(watchedContext);
    return {
      page,
      context,
      async visit(path) {
        await page.goto(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
      },
      allowFaults: watchedContext.allowFaults,
      listFaults: watchedContext.listFaults,
    };
  }

  return {
    openSignedOut: (service, options) => openBrowser(service, options),
    clearFaults: () => {
      for (const { allowFaults } of openBrowsers) allowFaults(/./);
    },
    async openSignedIn(service, path, options) {
      const user = await openBrowser(service, options, await getSession(service));
      await user.visit(path);
      return user;
    },
    async callApi<T>(service: BrowsedService, method: string, path: string, body?: object): Promise<T> {
      const response = await fetch(`${service.operatorUrl}/api/v1${path}`, {
        method,
        headers: {
          ...(await getSession(service)),
          Origin: service.operatorUrl,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return JSON.parse(text) as T;
    },
  };
}

/** Waits until the message has the given state. */
export async function waitForState(
  { callApi }: BrowserRig,
  service: BrowsedService,
  id: string,
  state: string,
): Promise<void> {
  const readMessage = () => callApi<{ state: string }>(service, 'GET', `/messages/${id}`);
  await expect.poll(async () => (await readMessage()).state).toBe(state);
}

/** Replaces the responses of the service to requests for these addresses until the returned function is called. */
export async function replaceResponses(
  page: Page,
  addresses: string | RegExp,
  answer: (route: Route) => Promise<void>,
): Promise<() => void> {
  let isRestored = false;
  let isClosing = false;
  onTestFinished(() => {
    isClosing = true;
  });
  // The route forwards requests instead of being removed, because a removal would leave requests in progress without a
  // response.
  await page.route(addresses, async (route) => {
    try {
      await (isRestored ? route.continue() : answer(route));
    } catch (error) {
      // After the test, the page is closed while it waits for responses.
      if (!isClosing) throw error;
    }
  });
  return () => {
    isRestored = true;
  };
}

/** Returns the stored session of a signed-in browser: the cookie of the host and the session secret of the origin. */
function toStorageState(operatorUrl: string, session: SessionHeaders): Required<BrowserContextOptions>['storageState'] {
  const [name = '', value = ''] = session.Cookie.split('=');
  const { hostname: domain, origin } = new URL(operatorUrl);
  const cookieAttributes = { path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' } as const;
  return {
    cookies: [{ name, value, domain, ...cookieAttributes }],
    origins: [{ origin, localStorage: [{ name: 'postrider-session', value: session['Postrider-Session'] }] }],
  };
}

/** Returns the one-time link of a service without a password. */
export function findSignInLink(service: BrowsedService): string {
  const { signIn } = JSON.parse(service.stdout().split('\n')[0] ?? '') as { signIn: string };
  return signIn;
}

interface WatchedContext {
  readonly context: BrowserContext;
  readonly listFaults: () => readonly string[];
  readonly allowFaults: (...lines: readonly RegExp[]) => void;
}

function watchContext(context: BrowserContext, page: Page, serviceOrigin: string): WatchedContext {
  const observedFaults: string[] = [];
  const allowedFaults: RegExp[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') observedFaults.push(formatConsoleLine(message));
  });
  context.on('weberror', (error) => observedFaults.push(`exception: ${error.error().message}`));
  context.on('dialog', (dialog) => {
    observedFaults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('page', (openedPage) => {
    if (openedPage !== page) observedFaults.push(`window: ${openedPage.url()}`);
  });
  // Returns true for a request to another origin. A request that the content security policy blocks reaches no server
  // and causes an error in the console.
  const isToOtherOrigin = (request: Request) => {
    const { protocol, origin } = new URL(request.url());
    return !['data:', 'blob:', 'about:'].includes(protocol) && origin !== serviceOrigin;
  };
  const recordRequest = (request: Request) => {
    if (isToOtherOrigin(request)) observedFaults.push(`request: ${request.method()} ${request.url()}`);
  };
  context.on('requestfinished', recordRequest);
  context.on('requestfailed', (request) => {
    if (!/BLOCKED|^csp$/i.test(request.failure()?.errorText ?? '')) recordRequest(request);
  });
  page.on('websocket', (socket) => observedFaults.push(`websocket: ${socket.url()}`));
  return {
    context,
    listFaults: () => observedFaults.filter((line) => !allowedFaults.some((pattern) => pattern.test(line))),
    allowFaults: (...lines) => void allowedFaults.push(...lines),
  };
}

/** Returns `error: text (address)`. The text of a failed request contains only its status. */
function formatConsoleLine(message: ConsoleMessage): string {
  const { url } = message.location();
  return `${message.type()}: ${message.text()}${url === '' ? '' : ` (${url})`}`;
}

/** Returns the attribute of each element, or null for an element without the attribute. */
export async function listAttributes(elements: Locator, name: string): Promise<readonly (string | null)[]> {
  return Promise.all((await elements.all()).map((element) => element.getAttribute(name)));
}
