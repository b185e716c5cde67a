/** The settings of notifications to operators. */
import { parseAddress, parseSenderAddress } from '../model/address.ts';
import type { NotificationTarget } from '../model/notification.ts';
import { isSigningSecret, parseTargetUrl } from '../model/webhook-target.ts';
import { MASK } from '../printing/escape.ts';
import { createFault, createParseResult, type ParseResult, quote } from './units.ts';

const MAX_TARGETS = 10;
/** The current secret and, during a rotation, the previous one. */
const MAX_SECRETS = 2;
const MAIL_SCHEME = 'mailto:';

/** Accepts HTTP and private addresses; `findNotifyFault` refuses them unless POSTRIDER_WEBHOOK_TARGETS permits them. */
export function parseNotifyTargets(text: string): ParseResult<readonly NotificationTarget[]> {
  const targets: NotificationTarget[] = [];
  for (const element of text.split(',').map((part) => part.trim())) {
    const target = parseTarget(element);
    if (!target.ok) return target;
    targets.push(target.value);
  }
  if (targets.length > MAX_TARGETS)
    return createFault(`the list has ${targets.length} targets; give at most ${MAX_TARGETS}`);
  const targetTexts = targets.map((target) => target.text);
  const duplicate = targetTexts.find((text, index) => targetTexts.indexOf(text) < index);
  return duplicate === undefined
    ? createParseResult(Object.freeze(targets))
    : createFault(`${quote(maskTargets(duplicate))} is given twice; remove one`);
}

/** Masks the logins, paths, queries and fragments of URLs. Accepts any text. */
export function maskTargets(text: string): string {
  return text
    .split(',')
    .map((element) => maskTarget(element.trim()))
    .join(',');
}

function maskTarget(text: string): string {
  if (!text.includes('//') && !text.toLowerCase().startsWith('http')) return text;
  const url = URL.parse(text);
  // A URL without a host is mistyped, so all text after its scheme may be a secret.
  if (url === null || url.host === '') return `${text.slice(0, text.indexOf(':') + 1)}${MASK}`;
  const login = url.username === '' && url.password === '' ? '' : `${MASK}@`;
  const path = `${url.pathname}${url.search}${url.hash}`;
  return `${url.protocol}//${login}${url.host}${path === '/' ? path : `/${MASK}`}`;
}

function parseTarget(text: string): ParseResult<NotificationTarget> {
  if (text === '') return createFault('the list contains an empty target; remove a comma');
  if (text.toLowerCase().startsWith(MAIL_SCHEME)) {
    const address = text.slice(MAIL_SCHEME.length);
    return parseAddress(address) === null
      ? createFault(`${quote(text)} is not an address such as mailto:ops@example.com`)
      : createParseResult({ kind: 'mail', text: `${MAIL_SCHEME}${address}`, address });
  }
  if (!text.includes('://'))
    return createFault(
      `${quote(maskTargets(text))} is not a target such as mailto:ops@example.com or https://hooks.example.com/postrider`,
    );
  const url = parseTargetUrl(text, 'any');
  return url.ok
    ? createParseResult({ kind: 'https', text: url.value.href, url: url.value.href })
    : createFault(`${quote(maskTargets(text))} ${url.fault}`);
}

export function parseNotifyFrom(text: string): ParseResult<string> {
  return parseSenderAddress(text) === null
    ? createFault(`${quote(text)} is not an address such as postrider@example.com`)
    : createParseResult(text);
}

/** The error contains no part of the secret. */
export function parseNotifySecrets(text: string): ParseResult<readonly string[]> {
  const secrets = text.split(',').map((secret) => secret.trim());
  if (!secrets.every(isSigningSecret))
    return createFault(
      'a secret must be `whsec_` followed by the base64 encoding of 24 to 64 bytes; `echo "whsec_$(openssl rand -base64 32)"` prints one',
    );
  return secrets.length > MAX_SECRETS
    ? createFault(`the list has ${secrets.length} secrets; give the new secret and the previous one`)
    : createParseResult(Object.freeze(secrets));
}

interface NotifySettings {
  readonly webhookTargets: 'public' | 'any';
  readonly notifyTargets: readonly NotificationTarget[];
  readonly notifyFrom: string | null;
  readonly notifySecrets: readonly string[];
}

interface NotifyNames {
  readonly targets: string;
  readonly from: string;
  readonly secret: string;
}

export function findNotifyFault(settings: NotifySettings, names: NotifyNames): string | null {
  const { webhookTargets, notifyTargets, notifyFrom, notifySecrets } = settings;
  for (const target of notifyTargets) {
    if (target.kind !== 'https') continue;
    const url = parseTargetUrl(target.url, webhookTargets);
    if (!url.ok) return `${names.targets}: ${quote(maskTargets(target.url))} ${url.fault}`;
  }
  const hasHttpsTarget = notifyTargets.some(({ kind }) => kind === 'https');
  const hasMailTarget = notifyTargets.some(({ kind }) => kind === 'mail');
  if (hasHttpsTarget && notifySecrets.length === 0)
    return `${names.targets} has an HTTPS target, whose requests are signed; set ${names.secret}`;
  if (hasMailTarget && notifyFrom === null)
    return `${names.targets} has a mail target, which needs a sender; set ${names.from} to an address of an authenticated domain`;
  if (notifyTargets.length === 0) return null;
  if (!hasHttpsTarget && notifySecrets.length > 0)
    return `${names.secret} is set, but ${names.targets} has no HTTPS target; add one, or remove ${names.secret}`;
  if (!hasMailTarget && notifyFrom !== null)
    return `${names.from} is set, but ${names.targets} has no mail target; add one, or remove ${names.from}`;
  return null;
}
