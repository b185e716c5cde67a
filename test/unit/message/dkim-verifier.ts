/**
 * Verifies DKIM signatures and canonical forms independently of Postrider: with mailauth, and with a literal
 * implementation of RFC 6376.
 */
import { createRequire } from 'node:module';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';

/** The texts of TXT records by name. */
export type TxtRecords = Readonly<Record<string, string>>;

export interface VerifiedSignature {
  readonly domain: string;
  readonly algorithm: string;
  readonly result: string;
  readonly aligned: boolean;
}

/** Verifies a message with mailauth. Returns one entry for each DKIM-Signature. */
export async function verifySignatures(message: Buffer, txt: TxtRecords): Promise<readonly VerifiedSignature[]> {
  const { results } = await dkimVerify(message, {
    resolver: async (name: string) => {
      const text = txt[name];
      if (text === undefined) throw Object.assign(new Error(`no ${name}`), { code: 'ENOTFOUND' });
      return [[text]];
    },
  });
  return results.map((signature) => ({
    domain: signature.signingDomain ?? '',
    algorithm: signature.algo ?? '',
    result: signature.status.result,
    aligned: Boolean(signature.status.aligned),
  }));
}

interface MailauthTools {
  formatRelaxedLine(line: Buffer, suffix: string): Buffer;
}
interface MailauthBody {
  RelaxedHash: new (
    algorithm: string,
    maxBodyLength: false,
  ) => { update(chunk: Buffer): void; digest(encoding: string): string };
}

const require = createRequire(import.meta.url);
const { formatRelaxedLine } = require('mailauth/lib/tools.js') as MailauthTools;
const { RelaxedHash } = require('mailauth/lib/dkim/body/relaxed.js') as MailauthBody;

/** Returns the canonical form of a field as mailauth computes it, with one character per octet. */
export function relaxFieldWithMailauth(field: string): string {
  return formatRelaxedLine(Buffer.from(field, 'latin1'), '').toString('latin1');
}

/** Returns the value of `bh=` for a body as mailauth computes it. */
export function hashBodyWithMailauth(body: Buffer): string {
  const hasher = new RelaxedHash('sha256', false);
  hasher.update(body);
  return hasher.digest('base64');
}

/** Returns the relaxed field by the steps of RFC 6376 section 3.4.2. */
export function relaxFieldLiterally(field: string): string {
  const colon = field.indexOf(':');
  const value = field
    .slice(colon + 1)
    .replace(/\r\n(?=[ \t])/g, '')
    .replace(/[ \t]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${field
    .slice(0, colon)
    .toLowerCase()
    .replace(/[ \t]+$/, '')}:${value}`;
}

/** Returns the relaxed body by the steps of RFC 6376 section 3.4.4. */
export function relaxBodyLiterally(body: string): string {
  const lines = body
    .split('\r\n')
    .map((line) => line.replace(/[ \t]+$/, '').replace(/[ \t]+/g, ' '))
    .join('\r\n');
  const trimmedLines = lines.replace(/(\r\n)+$/, '');
  return trimmedLines === '' ? '' : `${trimmedLines}\r\n`;
}
