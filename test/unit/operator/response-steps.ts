/**
 * The requests to the operator API for responses.test.ts, in order: the operationId, the expected status and the
 * options. They cause every success and every error that an operation itself returns. On all routes, responses.test.ts
 * causes the errors that occur before an operation runs (400, 401, 403, 413, 415, 429, 503).
 */
import type { RequestOptions } from './response-check.ts';

export type RequestStep = readonly [operation: string, status: number, given: RequestOptions];

/** Values that are known only after the service has started. */
export interface KnownIds {
  readonly queuedIds: readonly [string, string];
  readonly completedIds: readonly string[];
  /** Ids of captured messages: one with HTML, and one with only text. */
  readonly capturedIds: readonly [string, string];
  readonly session: Readonly<Record<string, string>>;
  readonly password: string;
}

const UNKNOWN_ID = '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21';
const SHOP_ACCOUNT = { account: 'shop' };
const UNKNOWN_ACCOUNT = { account: 'unknown' };
const SUPPLIED_KEY = `pr_${'b'.repeat(43)}`;
const DOMAIN = { domain: 'example.org' };
const UNKNOWN_DOMAIN = { domain: 'example.net' };
const ADDRESS = 'gone@example.com';
const ROUTE = { route: 'default' };
const UNKNOWN_ROUTE = { route: 'nowhere' };
const WEBHOOK = { id: 'wh_1' };
const UNKNOWN_WEBHOOK = { id: 'wh_999' };
/** No server listens on this port. */
const UNREACHABLE_URL = 'http://127.0.0.1:1/webhooks';
const CSV = { 'Content-Type': 'text/csv' };

export function createSteps({
  queuedIds: [firstId, secondId],
  completedIds,
  capturedIds: [html, plain],
  session,
  password,
}: KnownIds) {
  const steps: readonly RequestStep[] = [
    ['createAccount', 201, { body: { name: 'shop', rate: '10/1h', volume: '1000', volumeExpires: '30d' } }],
    ['createAccount', 409, { body: { name: 'shop' } }],
    ['createAccount', 400, { body: { name: 'other', rate: 'often' } }],
    ['setAccount', 200, { path: SHOP_ACCOUNT, body: { throttle: '50/s:200', maxBounces: '5%' } }],
    ['setAccount', 404, { path: UNKNOWN_ACCOUNT, body: { volume: 7 } }],
    ['setAccount', 409, { path: SHOP_ACCOUNT, body: { volume: 7, expected: 'another' } }],
    ['setAccount', 400, { path: SHOP_ACCOUNT, body: {} }],
    ['lockAccount', 409, { path: SHOP_ACCOUNT, body: { reason: 'unpaid', expected: 'another' } }],
    ['lockAccount', 404, { path: UNKNOWN_ACCOUNT, body: { reason: 'unpaid' } }],
    ['lockAccount', 200, { path: SHOP_ACCOUNT, body: { reason: 'unpaid' } }],
    ['listAccounts', 200, {}],
    ['showAccount', 200, { path: SHOP_ACCOUNT }],
    ['unlockAccount', 409, { path: SHOP_ACCOUNT, body: { expected: 'another' } }],
    ['unlockAccount', 404, { path: UNKNOWN_ACCOUNT }],
    ['unlockAccount', 200, { path: SHOP_ACCOUNT }],
    ['showAccount', 200, { path: SHOP_ACCOUNT }],
    ['showAccount', 404, { path: UNKNOWN_ACCOUNT }],

    ['setSender', 200, { path: SHOP_ACCOUNT, body: { sender: '@shop.example', name: 'Shop' } }],
    ['setSender', 400, { path: SHOP_ACCOUNT, body: { sender: 'shop.example', name: 'Shop' } }],
    ['setSender', 404, { path: UNKNOWN_ACCOUNT, body: { sender: '@shop.example', name: 'Shop' } }],
    ['listSenders', 200, { query: { account: 'shop' } }],
    ['listSenders', 404, { query: { account: 'unknown' } }],
    ['removeSender', 200, { path: { ...SHOP_ACCOUNT, sender: '@shop.example' } }],
    ['removeSender', 404, { path: { ...SHOP_ACCOUNT, sender: '@shop.example' } }],

    ['createKey', 201, { path: SHOP_ACCOUNT, body: { name: 'web', expires: '30d' } }],
    ['createKey', 404, { path: UNKNOWN_ACCOUNT, body: {} }],
    ['rotateKey', 200, { path: { key: 'key_2' }, body: { grace: '1h' } }],
    ['rotateKey', 404, { path: { key: 'key_999' } }],
    ['revokeKey', 200, { path: { key: 'key_3' } }],
    ['revokeKey', 404, { path: { key: 'key_999' } }],
    ['importKey', 201, { path: { account: 'default' }, body: { key: SUPPLIED_KEY } }],
    ['importKey', 404, { path: UNKNOWN_ACCOUNT, body: { key: SUPPLIED_KEY } }],
    ['importKey', 409, { path: SHOP_ACCOUNT, body: { key: SUPPLIED_KEY } }],
    ['importKey', 400, { path: SHOP_ACCOUNT, body: { key: 'secret' } }],
    ['listKeys', 200, { path: SHOP_ACCOUNT }],
    ['listKeys', 200, { path: { account: 'default' } }],
    ['listKeys', 404, { path: UNKNOWN_ACCOUNT }],

    ['addDomain', 200, { path: SHOP_ACCOUNT, body: DOMAIN }],
    ['addDomain', 404, { path: UNKNOWN_ACCOUNT, body: { domain: 'example.net' } }],
    ['addDomain', 409, { path: SHOP_ACCOUNT, body: DOMAIN }],
    ['addDomain', 400, { path: SHOP_ACCOUNT, body: { domain: 'no domain' } }],
    ['verifyDomain', 200, { path: DOMAIN }],
    ['verifyDomain', 404, { path: UNKNOWN_DOMAIN }],
    ['rotateDomain', 200, { path: DOMAIN, body: {} }],
    ['rotateDomain', 409, { path: DOMAIN, body: {} }],
    ['rotateDomain', 404, { path: UNKNOWN_DOMAIN, body: {} }],
    ['listDomains', 200, {}],
    ['rotateDomain', 200, { path: DOMAIN, body: { cancel: true } }],
    ['setDomain', 200, { path: DOMAIN, body: { subdomains: true } }],
    ['setDomain', 404, { path: UNKNOWN_DOMAIN, body: { subdomains: true } }],
    ['setDomain', 409, { path: DOMAIN, body: { returnPath: 'bounces.example.org' } }],
    ['showDomain', 200, { path: DOMAIN }],
    ['showDomain', 404, { path: UNKNOWN_DOMAIN }],
    ['removeDomain', 200, { path: DOMAIN }],
    ['removeDomain', 404, { path: UNKNOWN_DOMAIN }],

    ['showOverview', 200, {}],
    ['showOverview', 200, { query: { range: '7d' } }],
    ['showOverview', 400, { query: { range: 'ever' } }],
    ['showDeliverability', 200, { query: { by: 'account', range: '7d' } }],
    ['showDeliverability', 404, { query: { account: 'unknown' } }],
    ['showDeliverability', 400, { query: { by: 'account', sendingDomain: 'example.org' } }],
    ['showSetup', 200, {}],
    ['listMessages', 200, {}],
    ['listMessages', 200, { query: { waitReason: 'true', limit: '2' } }],
    ['listMessages', 404, { query: UNKNOWN_ACCOUNT }],
    ['listMessages', 400, { query: { cursor: 'elsewhere' } }],
    ...[firstId, ...completedIds].flatMap((id): readonly RequestStep[] => [
      ['showMessage', 200, { path: { id } }],
      ['explainMessage', 200, { path: { id } }],
    ]),
    ['exportMessages', 200, {}],
    ['exportMessages', 404, { query: UNKNOWN_ACCOUNT }],
    ['showMessage', 404, { path: { id: UNKNOWN_ID } }],
    ['showMessageSource', 200, { path: { id: html } }],
    ['showMessageSource', 400, { path: { id: 'x' } }],
    ['showMessageSource', 404, { path: { id: UNKNOWN_ID } }],
    ['explainMessage', 404, { path: { id: UNKNOWN_ID } }],
    ['retryMessage', 200, { path: { id: firstId } }],
    ['retryMessage', 404, { path: { id: UNKNOWN_ID } }],
    ['cancelMessage', 200, { path: { id: secondId } }],
    ['cancelMessage', 409, { path: { id: secondId } }],
    ['cancelMessage', 404, { path: { id: UNKNOWN_ID } }],
    ['retryMessage', 409, { path: { id: secondId } }],
    ['resendMessage', 201, { path: { id: secondId } }],
    ['resendMessage', 409, { path: { id: firstId } }],
    ['resendMessage', 404, { path: { id: UNKNOWN_ID } }],
    ['countMessages', 200, { query: { state: 'queued' } }],
    ['countMessages', 404, { query: UNKNOWN_ACCOUNT }],
    ['countMessages', 400, { query: { state: 'sent' } }],
    ['changeMessages', 200, { body: { action: 'retry', state: 'queued' } }],
    ['changeMessages', 404, { body: { action: 'retry', ...UNKNOWN_ACCOUNT } }],
    ['changeMessages', 400, { body: { action: 'retry' } }],

    ['addHold', 201, { body: { to: '@held.example', for: '2h', reason: 'incident' } }],
    ['addHold', 400, { body: { from: 'held.example', reason: 'incident' } }],
    ['addHold', 404, { body: { ...UNKNOWN_ACCOUNT, reason: 'incident' } }],
    ['listHolds', 200, {}],
    ['releaseHolds', 200, { body: { ids: '1' } }],
    ['releaseHolds', 409, { body: { ids: '1' } }],
    ['releaseHolds', 404, { body: { ids: '7' } }],

    ['sendTestMessage', 200, { body: { account: 'default', to: ADDRESS, message: 'one\ntwo' } }],
    ['sendTestMessage', 404, { body: UNKNOWN_ACCOUNT }],

    ['listFeedback', 200, {}],
    ['findFeedback', 200, { path: { id: '1' } }],
    ['findFeedback', 404, { path: { id: '999' } }],

    ['addSuppression', 200, { path: SHOP_ACCOUNT, body: { address: ADDRESS } }],
    ['addSuppression', 200, { path: { account: '*' }, body: { address: ADDRESS } }],
    ['addSuppression', 404, { path: UNKNOWN_ACCOUNT, body: { address: ADDRESS } }],
    ['addSuppression', 400, { path: SHOP_ACCOUNT, body: { address: 'ada' } }],
    ['listSuppressions', 200, { path: SHOP_ACCOUNT }],
    ['listSuppressions', 404, { path: UNKNOWN_ACCOUNT }],
    ['showSuppression', 200, { path: { address: ADDRESS } }],
    ['exportSuppressions', 200, { path: SHOP_ACCOUNT }],
    ['exportSuppressions', 404, { path: UNKNOWN_ACCOUNT }],
    ['removeSuppression', 409, { path: { ...SHOP_ACCOUNT, address: ADDRESS }, query: { provider: 'true' } }],
    ['removeSuppression', 200, { path: { ...SHOP_ACCOUNT, address: ADDRESS } }],
    ['removeSuppression', 404, { path: { ...SHOP_ACCOUNT, address: ADDRESS } }],
    ['importSuppressions', 200, { path: SHOP_ACCOUNT, headers: CSV, body: 'ada@example.com\nno address\n' }],
    ['importSuppressions', 200, { path: SHOP_ACCOUNT, query: { dryRun: 'true' }, body: '[{"email":"a@example.com"}]' }],
    [
      'importSuppressions',
      400,
      { path: SHOP_ACCOUNT, headers: CSV, query: { reason: 'none' }, body: 'ada@example.com\n' },
    ],
    ['importSuppressions', 404, { path: UNKNOWN_ACCOUNT, headers: CSV, body: 'ada@example.com\n' }],
    ['importSuppressions', 413, { path: SHOP_ACCOUNT, headers: { ...CSV, 'Content-Length': '300000000' }, body: 'a' }],
    [
      'importSuppressions',
      415,
      { path: SHOP_ACCOUNT, headers: { 'Content-Type': 'text/plain' }, body: 'ada@example.com\n' },
    ],

    ['listRoutes', 200, {}],
    ['pauseRoute', 200, { path: ROUTE, body: { for: '1h', reason: 'incident' } }],
    ['pauseRoute', 400, { path: ROUTE, body: { for: 'soon' } }],
    ['pauseRoute', 404, { path: UNKNOWN_ROUTE, body: {} }],
    ['showRoute', 200, { path: ROUTE }],
    ['showRoute', 404, { path: UNKNOWN_ROUTE }],
    ['setRouting', 409, { body: { list: 'default' } }],
    ['resumeRoute', 200, { path: ROUTE }],
    ['resumeRoute', 409, { path: ROUTE }],
    ['resumeRoute', 404, { path: UNKNOWN_ROUTE }],
    ['testRoute', 200, { path: ROUTE, body: { from: 'shop@example.org', to: 'ada@example.com' } }],
    ['testRoute', 409, { path: ROUTE, body: { from: 'shop@example.org', to: ADDRESS } }],
    ['testRoute', 404, { path: UNKNOWN_ROUTE, body: { from: 'shop@example.org', to: ADDRESS } }],
    ['setRouting', 200, { body: { list: 'default', dryRun: true } }],
    ['setRouting', 200, { body: { list: 'default', account: 'shop' } }],
    ['setRouting', 400, { body: { list: 'default,default' } }],
    ['setRouting', 404, { body: { list: 'default', ...UNKNOWN_ACCOUNT } }],
    ['showRouting', 200, {}],
    ['clearRouting', 200, { query: SHOP_ACCOUNT }],
    ['clearRouting', 404, { query: SHOP_ACCOUNT }],

    ['createWebhook', 201, { body: { url: UNREACHABLE_URL, name: 'app', account: 'shop', events: 'all' } }],
    ['createWebhook', 400, { body: { url: UNREACHABLE_URL, events: 'message.lost' } }],
    ['createWebhook', 404, { body: { url: UNREACHABLE_URL, account: 'nobody' } }],
    ['createWebhook', 409, { body: { url: 'https://user:password@app.example.com/' } }],
    ['listWebhooks', 200, {}],
    ['showWebhookStatistics', 200, {}],
    ['showWebhook', 200, { path: WEBHOOK }],
    ['showWebhook', 404, { path: UNKNOWN_WEBHOOK }],
    ['showWebhook', 400, { path: { id: 'first' } }],
    ['updateWebhook', 200, { path: WEBHOOK, body: { events: 'message.bounced', name: '' } }],
    ['updateWebhook', 400, { path: WEBHOOK, body: {} }],
    ['updateWebhook', 404, { path: UNKNOWN_WEBHOOK, body: { name: 'app' } }],
    ['updateWebhook', 409, { path: WEBHOOK, body: { url: 'ftp://app.example.com/' } }],
    ['rotateWebhook', 200, { path: WEBHOOK, body: { grace: '1h' } }],
    ['rotateWebhook', 400, { path: WEBHOOK, body: { grace: '1y' } }],
    ['rotateWebhook', 404, { path: UNKNOWN_WEBHOOK, body: {} }],
    ['testWebhook', 200, { path: WEBHOOK }],
    ['testWebhook', 404, { path: UNKNOWN_WEBHOOK }],
    ['listWebhookDeliveries', 200, { path: WEBHOOK, query: { limit: '5' } }],
    ['listWebhookDeliveries', 200, { path: WEBHOOK, query: { status: 'pending' } }],
    ['listWebhookDeliveries', 400, { path: WEBHOOK, query: { status: 'failed', delivery: 'none' } }],
    ['listWebhookDeliveries', 404, { path: UNKNOWN_WEBHOOK }],
    ['replayWebhook', 200, { path: WEBHOOK, body: { since: '1h', all: true } }],
    ['replayWebhook', 200, { path: WEBHOOK, body: { dryRun: true } }],
    ['replayWebhook', 404, { path: UNKNOWN_WEBHOOK, body: {} }],
    ['replayWebhook', 404, { path: WEBHOOK, body: { delivery: UNKNOWN_ID } }],
    ['replayWebhook', 400, { path: WEBHOOK, body: { delivery: UNKNOWN_ID, since: '1h' } }],
    ['disableWebhook', 200, { path: WEBHOOK }],
    ['disableWebhook', 404, { path: UNKNOWN_WEBHOOK }],
    ['showWebhook', 200, { path: WEBHOOK }],
    ['testWebhook', 409, { path: WEBHOOK }],
    ['replayWebhook', 409, { path: WEBHOOK, body: {} }],
    ['enableWebhook', 200, { path: WEBHOOK }],
    ['enableWebhook', 404, { path: UNKNOWN_WEBHOOK }],
    ['deleteWebhook', 200, { path: WEBHOOK }],
    ['deleteWebhook', 404, { path: WEBHOOK }],

    ['createToken', 201, { body: { name: 'ci', expires: '30d' } }],
    ['createToken', 409, { body: { name: 'ci' } }],
    ['listTokens', 200, {}],
    ['revokeToken', 200, { path: { id: '2' } }],
    ['revokeToken', 404, { path: { id: '999' } }],
    ['listAudit', 200, {}],
    ['listAudit', 200, { query: { limit: '2', before: '4' } }],
    ['listProviders', 200, {}],
    ['showConfig', 200, {}],
    ['runDoctor', 200, {}],
    ['tryLoop', 200, { body: { within: '1s' } }],
    ['tryLoop', 400, { body: { within: '2h' } }],

    ['listInbox', 200, {}],
    ['listInbox', 200, { query: { limit: '1' } }],
    ['listInbox', 400, { query: { before: 'elsewhere' } }],
    ['listInbox', 200, { query: { search: 'example' } }],
    ['addInboxRule', 201, { body: { match: 'rule.example', code: 451, enhanced: '4.3.0' } }],
    ['addInboxRule', 400, { body: { match: 'rule.example', code: 250 } }],
    ['listInboxRules', 200, {}],
    ['removeInboxRule', 200, { path: { id: '1' } }],
    ['removeInboxRule', 404, { path: { id: '1' } }],
    ['showInbox', 200, { path: { id: html } }],
    ['showInbox', 200, { path: { id: plain } }],
    ['showInbox', 404, { path: { id: UNKNOWN_ID } }],
    ['showInboxSource', 200, { path: { id: html } }],
    ['showInboxSource', 404, { path: { id: UNKNOWN_ID } }],
    ['showInboxHtml', 200, { path: { id: html } }],
    ['showInboxHtml', 200, { path: { id: html }, headers: { 'Sec-Fetch-Dest': 'document' } }],
    ['showInboxHtml', 404, { path: { id: plain } }],
    ['showMessageHtml', 200, { path: { id: html } }],
    ['showMessageHtml', 200, { path: { id: html }, headers: { 'Sec-Fetch-Dest': 'document' } }],
    ['showMessageHtml', 404, { path: { id: plain } }],

    ['signIn', 200, { body: { password } }],
    ['signIn', 401, { body: { password: 'wrong' } }],
    ['signIn', 403, { body: { link: 'used' } }],
    ['signIn', 400, { body: {} }],
    ['signOut', 200, {}],
    ['createTicket', 200, { headers: session, body: { path: '/api/v1/inbox' } }],
    ['createTicket', 400, { headers: session, body: {} }],
    ['showSession', 200, {}],
    ['showSession', 200, { headers: session }],
    ['subscribeToChanges', 200, { readUntil: '\ndata: ' }],
    ['showOperatorDocument', 200, {}],
    ['readPublicDocument', 200, {}],
    ['showLiveness', 200, {}],
    ['showMetrics', 200, {}],
    ['showPublicDocument', 200, {}],
  ];
  return steps;
}

/** Documented errors that a test cannot cause, with the reason. */
export const UNREACHABLE_ERRORS: Readonly<Record<string, string>> = {
  'addHold 409': 'the maximum number of holds in force is reached',
  'createKey 409': 'two keys of 256 random bits would have to be equal',
  'importSuppressions 409': 'the folder for temporary files would have to be missing or full',
  'rotateKey 409': 'two keys of 256 random bits would have to be equal',
  'verifyDomain 409': 'another process would have to change the domain between two statements of one request',
};
