import { BREVO } from './brevo.ts';
import { MAILERSEND } from './mailersend.ts';
import { MAILGUN } from './mailgun.ts';
import { MAILJET } from './mailjet.ts';
import { MAILTRAP } from './mailtrap.ts';
import { MANDRILL } from './mandrill.ts';
import { POSTAL } from './postal.ts';
import { POSTMARK } from './postmark.ts';
import type { Provider } from './provider.ts';
import { RESEND } from './resend.ts';
import { SENDGRID } from './sendgrid.ts';
import { SES } from './ses.ts';
import { SPARKPOST } from './sparkpost.ts';

export const PROVIDERS: readonly Provider[] = [
  POSTMARK,
  SENDGRID,
  MAILGUN,
  RESEND,
  BREVO,
  MAILJET,
  SPARKPOST,
  MANDRILL,
  MAILERSEND,
  MAILTRAP,
  SES,
  POSTAL,
];

export function findProvider(name: string | null): Provider | null {
  return PROVIDERS.find((provider) => provider.name === name) ?? null;
}

export function findProviderByHost(host: string): Provider | null {
  const name = (host.endsWith('.') ? host.slice(0, -1) : host).toLowerCase();
  return PROVIDERS.find(({ relay }) => relay?.hosts.some((pattern) => matchesHost(name, pattern)) === true) ?? null;
}

/** `*` matches one or more characters of one label. */
function matchesHost(name: string, pattern: string): boolean {
  const [names, patterns] = [name.split('.'), pattern.split('.')];
  return names.length === patterns.length && patterns.every((label, at) => matchesLabel(names[at] ?? '', label));
}

function matchesLabel(label: string, pattern: string): boolean {
  const wildcardIndex = pattern.indexOf('*');
  if (wildcardIndex < 0) return label === pattern;
  const [start, end] = [pattern.slice(0, wildcardIndex), pattern.slice(wildcardIndex + 1)];
  return label.length > start.length + end.length && label.startsWith(start) && label.endsWith(end);
}
