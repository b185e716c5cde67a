/**
 * The tests of a file share the pages of signed-in operators, because a load of the dashboard costs a second of
 * processor time. A test fails if a page causes an error, a dialog, a new window or a request to another server.
 */
import type {
  BrowserContext,
  BrowserContextOptions,
  ConsoleMessage,
  Locator,
  Page,
  Request,
  Route,
} from 'playwright-core';
import { afterAll, afterEach, expect, onTestFinished, vi } from 'vitest';
import { getSharedChromium } from './chromium.ts';
import { type SessionHeaders, signInByLink } from './session.ts';

export interface BrowsedService {
  readonly operatorUrl: string;
  readonly signIn: string | null;
}

export interface OperatorOptions {
  /** Width of the window in CSS pixels; the default is the width of a desktop window. */
  readonly width?: number;
  /** Locale of the browser; the default is British English. */
  readonly locale?: string;
  /** The page is not shared: for tests that change cookies, permissions or the clock of the browser, or end the session. */
  readonly isOwn?: boolean;
}

export interface BrowserUser {
  readonly page: Page;
  readonly context: BrowserContext;
  visit(path: string): Promise<void>;
  allowFaults(...lines: readonly RegExp[]): void;
  listFaults(): readonly string[];
}

export interface BrowserRig {
  openSignedOut(service: BrowsedService, options?: OperatorOptions): Promise<BrowserUser>;
  openSignedIn(service: BrowsedService, path: string, options?: OperatorOptions): Promise<BrowserUser>;
  /** Calls the operator API. @throws Error with the response if its status is not 2xx */
  callApi<T>(service: BrowsedService, method: string, path: string, body?: object): Promise<T>;
}

const TIMEOUT_MS = 120_000;
const DESKTOP_VIEWPORT = { width: 1280, height: 900 };
const PHONE_HEIGHT = 780;

/** The dashboard shows "Page not found" here. A page is opened from here, so that it keeps nothing of the page before. */
const UNKNOWN_PATH = '/messages/no/page';
const UNKNOWN_PAGE_TITLE = 'Page not found';

const END_USE = `(() => {
  for (const button of document.querySelectorAll('.mantine-Notification-closeButton')) button.click();
  document.activeElement?.blur();
  return [...Object.keys(localStorage), ...Object.keys(sessionStorage)];
})()`;
const SESSION_KEY = 'postrider-session';

interface OpenPage extends BrowserUser {
  readonly origin: string;
  readonly isShared: boolean;
  /** Leaves the page as a test expects it, or returns false if that is not possible. */
  reset(): Promise<boolean>;
}

export function createBrowserRig(): BrowserRig {
  let usedPages: OpenPage[] = [];
  let idlePages: OpenPage[] = [];
  // The sign-in link is valid for one sign-in, so all browsers of this test file share one session.
  const sessions = new Map<string, Promise<SessionHeaders>>();
  const getSession = ({ operatorUrl, signIn }: BrowsedService) => {
    const session = sessions.get(operatorUrl) ?? signInByLink(signIn ?? '');
    sessions.set(operatorUrl, session);
    return session;
  };
  afterAll(async () => {
    await Promise.all(idlePages.map(({ context }) => context.close()));
  });
  afterEach(async ({ task }) => {
    const pages = usedPages;
    usedPages = [];
    const hasFailed = task.result?.state === 'fail';
    const faults: string[] = [];
    for (const page of pages) {
      const isReusable = !hasFailed && page.isShared && (await page.reset());
      faults.push(...page.listFaults());
      if (isReusable && faults.length === 0) idlePages.push(page);
      else await page.context.close();
    }
    expect(faults, 'faults of the pages').toEqual([]);
  });

  async function openPage(
    service: BrowsedService,
    options: OperatorOptions,
    session: SessionHeaders | null,
  ): Promise<OpenPage> {
    const browser = await getSharedChromium();
    const context = await browser.newContext({
      baseURL: service.operatorUrl,
      viewport: getViewport(options),
      reducedMotion: 'reduce',
      locale: options.locale ?? 'en-GB',
      permissions: ['clipboard-read', 'clipboard-write'],
      ...(session === null ? {} : { storageState: toStorageState(service.operatorUrl, session) }),
    });
    context.setDefaultTimeout(TIMEOUT_MS);
    const page = await context.newPage();
    const { listFaults, allowFaults, clear, listPendingRequests } = watchContext(context, page, service.operatorUrl);
    const findHeading = (name?: string) =>
      page.getByRole('heading', { level: 1, ...(name === undefined ? {} : { name }) });
    const isLoaded = () => session !== null && new URL(page.url()).origin === service.operatorUrl;
    const leavePage = async () => {
      await page.evaluate(`history.pushState(null, '', '${UNKNOWN_PATH}')`);
      await findHeading(UNKNOWN_PAGE_TITLE).waitFor();
    };
    return {
      page,
      context,
      origin: service.operatorUrl,
      isShared: session !== null && options.isOwn !== true && options.locale === undefined,
      allowFaults,
      listFaults,
      async visit(path) {
        if (!isLoaded()) {
          await page.goto(path);
          await findHeading().waitFor();
          return;
        }
        await leavePage();
        await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`);
        if (path !== UNKNOWN_PATH) await findHeading().filter({ hasNotText: UNKNOWN_PAGE_TITLE }).waitFor();
      },
      async reset() {
        await page.unrouteAll({ behavior: 'ignoreErrors' });
        if (!isLoaded() || context.pages().length > 1) return false;
        const storedNames = await page.evaluate<readonly string[]>(END_USE);
        if (storedNames.join() !== SESSION_KEY) return false;
        await leavePage();
        // The answer to a request of this test must not cause a fault in the next test.
        await expect.poll(listPendingRequests).toEqual([]);
        if (listFaults().length > 0) return false;
        clear();
        return true;
      },
    };
  }

  return {
    async openSignedOut(service, options = {}) {
      const page = await openPage(service, options, null);
      usedPages.push(page);
      return page;
    },
    async openSignedIn(service, path, options = {}) {
      const isShareable = options.isOwn !== true && options.locale === undefined;
      const idlePage = isShareable ? idlePages.find(({ origin }) => origin === service.operatorUrl) : undefined;
      idlePages = idlePages.filter((page) => page !== idlePage);
      const user = idlePage ?? (await openPage(service, options, await getSession(service)));
      usedPages.push(user);
      if (idlePage !== undefined) {
        await user.page.setViewportSize(getViewport(options));
        await user.page.emulateMedia({ colorScheme: 'light' });
      }
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

function getViewport({ width }: OperatorOptions) {
  return width === undefined ? DESKTOP_VIEWPORT : { width, height: PHONE_HEIGHT };
}

export async function waitForState(
  { callApi }: BrowserRig,
  service: BrowsedService,
  id: string,
  state: string,
): Promise<void> {
  await vi.waitFor(async () => expect(await callApi(service, 'GET', `/messages/${id}`)).toMatchObject({ state }), {
    timeout: TIMEOUT_MS,
  });
}

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

function toStorageState(operatorUrl: string, session: SessionHeaders): Required<BrowserContextOptions>['storageState'] {
  const [name = '', value = ''] = session.Cookie.split('=');
  const { hostname: domain, origin } = new URL(operatorUrl);
  const cookieAttributes = { path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' } as const;
  return {
    cookies: [{ name, value, domain, ...cookieAttributes }],
    origins: [{ origin, localStorage: [{ name: 'postrider-session', value: session['Postrider-Session'] }] }],
  };
}

interface WatchedContext {
  readonly listFaults: () => readonly string[];
  readonly allowFaults: (...lines: readonly RegExp[]) => void;
  /** Forgets the faults so far and which faults are allowed. */
  readonly clear: () => void;
  readonly listPendingRequests: () => readonly string[];
}

function watchContext(context: BrowserContext, page: Page, serviceOrigin: string): WatchedContext {
  let observedFaults: string[] = [];
  let allowedFaults: RegExp[] = [];
  const pendingRequests = new Set<Request>();
  context.on('request', (request) => pendingRequests.add(request));
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
  const isToOtherOrigin = (request: Request) => {
    const { protocol, origin } = new URL(request.url());
    return !['data:', 'blob:', 'about:'].includes(protocol) && origin !== serviceOrigin;
  };
  const recordRequest = (request: Request) => {
    if (isToOtherOrigin(request)) observedFaults.push(`request: ${request.method()} ${request.url()}`);
  };
  context.on('requestfinished', (request) => {
    pendingRequests.delete(request);
    recordRequest(request);
  });
  context.on('requestfailed', (request) => {
    pendingRequests.delete(request);
    if (!/BLOCKED|^csp$/i.test(request.failure()?.errorText ?? '')) recordRequest(request);
  });
  page.on('websocket', (socket) => observedFaults.push(`websocket: ${socket.url()}`));
  return {
    listFaults: () => observedFaults.filter((line) => !allowedFaults.some((pattern) => pattern.test(line))),
    allowFaults: (...lines) => void allowedFaults.push(...lines),
    clear: () => {
      [observedFaults, allowedFaults] = [[], []];
    },
    listPendingRequests: () =>
      [...pendingRequests].map((request) => request.url()).filter((url) => !/\/api\/v1\/events\b/.test(url)),
  };
}

function formatConsoleLine(message: ConsoleMessage): string {
  const { url } = message.location();
  return `${message.type()}: ${message.text()}${url === '' ? '' : ` (${url})`}`;
}

/** Returns the attribute of each element, or null for an element without the attribute. */
export async function listAttributes(elements: Locator, name: string): Promise<readonly (string | null)[]> {
  return Promise.all((await elements.all()).map((element) => element.getAttribute(name)));
}
