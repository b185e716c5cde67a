/**
 * Operators' browsers: one Chromium for a test file, a context of its own for each operator of each test. A test fails on
 * whatever a page must never do: an error in the console, an exception, a breach of its content policy, a dialog, a window,
 * a request to anywhere but the service.
 */
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  ConsoleMessage,
  Page,
  Request,
  Route,
} from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { launchChromium } from './chromium.ts';
import { type SessionHeaders, signInByLink } from './session.ts';

/** What has to be known of a service (test/scenarios/running-service.ts). */
export interface BrowsedService {
  readonly operatorUrl: string;
  /** What `serve --json` printed: its first line holds the link. */
  readonly stdout: () => string;
}

export interface OperatorOptions {
  /** A phone's width; a desk's unless given. */
  readonly width?: number;
  readonly dark?: boolean;
  readonly reducedMotion?: boolean;
  /** Of the browser, as it names it itself; British English unless given. */
  readonly locale?: string;
}

export interface BrowserUser {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Opens an address of the service, such as `/messages?state=queued`, and waits for its page's heading. */
  visit(path: string): Promise<void>;
  /** These are no faults: lines of the console that the test brings about on purpose. */
  allowFaults(...lines: readonly RegExp[]): void;
  /** What the pages have done so far and must not; the end of the test looks by itself. */
  faults(): readonly string[];
}

export interface BrowserRig {
  /** Forgets what has been done so far: for the tests of this rig alone. */
  clearFaults(): void;
  /** Somebody at a browser who has not signed in. */
  signedOut(service: BrowsedService, options?: OperatorOptions): Promise<BrowserUser>;
  /** Somebody who has, by the link that the service printed, on the page of that path. */
  signedIn(service: BrowsedService, path: string, options?: OperatorOptions): Promise<BrowserUser>;
  /** Does by the operator API what a test needs done; throws what it said where it refuses. */
  callApi<T>(service: BrowsedService, method: string, path: string, body?: object): Promise<T>;
}

const PATIENCE_MS = 60_000;
const DESK = { width: 1280, height: 900 };
const PHONE_HEIGHT = 780;

/** Call once at the top of a test file. */
export function browserRig(): BrowserRig {
  let browser: Browser;
  let open: Watched[] = [];
  // The link is good once: whoever comes later in this file brings the session that it began.
  const sessions = new Map<string, Promise<SessionHeaders>>();
  const sessionOf = (service: BrowsedService) => {
    const session = sessions.get(service.operatorUrl) ?? signInByLink(signInLink(service));
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
    const watched = open;
    open = [];
    await Promise.all(watched.map(({ context }) => context.close()));
    expect(
      watched.flatMap(({ faults }) => faults()),
      'what pages did and must not',
    ).toEqual([]);
  });

  async function stranger(
    service: BrowsedService,
    { width, dark, reducedMotion, locale }: OperatorOptions = {},
    session: SessionHeaders | null = null,
  ): Promise<BrowserUser> {
    const options: BrowserContextOptions = {
      baseURL: service.operatorUrl,
      viewport: width === undefined ? DESK : { width, height: PHONE_HEIGHT },
      colorScheme: dark === true ? 'dark' : 'light',
      reducedMotion: reducedMotion === true ? 'reduce' : 'no-preference',
      locale: locale ?? 'en-GB',
      ...(session === null ? {} : { storageState: storageOf(service.operatorUrl, session) }),
    };
    const context = await browser.newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const watched = watch(context, page, service.operatorUrl);
    open.push(watched);
    return {
      page,
      context,
      async visit(path) {
        await page.goto(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
      },
      allowFaults: watched.tolerate,
      faults: watched.faults,
    };
  }

  return {
    signedOut: (service, options) => stranger(service, options),
    clearFaults: () => {
      for (const { tolerate } of open) tolerate(/./);
    },
    async signedIn(service, path, options) {
      const somebody = await stranger(service, options, await sessionOf(service));
      await somebody.visit(path);
      return somebody;
    },
    async callApi<T>(service: BrowsedService, method: string, path: string, body?: object): Promise<T> {
      const response = await fetch(`${service.operatorUrl}/api/v1${path}`, {
        method,
        headers: {
          ...(await sessionOf(service)),
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

/** Answers what the page asks of these addresses in the service's place, until what it gives back is called. */
export async function replaceResponses(
  page: Page,
  addresses: string | RegExp,
  answer: (route: Route) => Promise<void>,
): Promise<() => void> {
  let over = false;
  // It goes on passing requests along: a request under way as the browser stops asking would have no answer for ever.
  await page.route(addresses, (route) => (over ? route.continue() : answer(route)));
  return () => {
    over = true;
  };
}

/** What the browser of a signed-in operator keeps: the cookie by host, the page's secret by origin. */
function storageOf(operatorUrl: string, session: SessionHeaders): Required<BrowserContextOptions>['storageState'] {
  const [name = '', value = ''] = session.Cookie.split('=');
  const { hostname: domain, origin } = new URL(operatorUrl);
  const kept = { path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Strict' } as const;
  return {
    cookies: [{ name, value, domain, ...kept }],
    origins: [{ origin, localStorage: [{ name: 'postrider-session', value: session['Postrider-Session'] }] }],
  };
}

/** The one-time link of a service without a password. */
export function signInLink(service: BrowsedService): string {
  const { signIn } = JSON.parse(service.stdout().split('\n')[0] ?? '') as { signIn: string };
  return signIn;
}

interface Watched {
  readonly context: BrowserContext;
  readonly faults: () => readonly string[];
  readonly tolerate: (...lines: readonly RegExp[]) => void;
}

function watch(context: BrowserContext, page: Page, home: string): Watched {
  const seen: string[] = [];
  const tolerated: RegExp[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.push(consoleLine(message));
  });
  context.on('weberror', (error) => seen.push(`exception: ${error.error().message}`));
  context.on('dialog', (dialog) => {
    seen.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('page', (other) => {
    if (other !== page) seen.push(`window: ${other.url()}`);
  });
  // What the content policy stopped has reached nobody; that it was tried is in the console.
  const strange = (request: Request) => {
    const { protocol, origin } = new URL(request.url());
    return !['data:', 'blob:', 'about:'].includes(protocol) && origin !== home;
  };
  const left = (request: Request) => {
    if (strange(request)) seen.push(`request: ${request.method()} ${request.url()}`);
  };
  context.on('requestfinished', left);
  context.on('requestfailed', (request) => {
    if (!/BLOCKED|^csp$/i.test(request.failure()?.errorText ?? '')) left(request);
  });
  page.on('websocket', (socket) => seen.push(`websocket: ${socket.url()}`));
  return {
    context,
    faults: () => seen.filter((line) => !tolerated.some((pattern) => pattern.test(line))),
    tolerate: (...lines) => void tolerated.push(...lines),
  };
}

/** `error: text (where)`: a refused request tells only its status, and its address is where. */
function consoleLine(message: ConsoleMessage): string {
  const { url } = message.location();
  return `${message.type()}: ${message.text()}${url === '' ? '' : ` (${url})`}`;
}
