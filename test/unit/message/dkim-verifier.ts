import { createRequire } from 'node:module';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';

export type TxtRecords = Readonly<Record<string, string>>;

export interface VerifiedSignature {
  readonly domain: string;
  readonly algorithm: string;
  readonly result: string;
  readonly aligned: boolean;
}

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

export function relaxFieldWithMailauth(field: string): string {
  return formatRelaxedLine(Buffer.from(field, 'latin1'), '').toString('latin1');
}

export function hashBodyWithMailauth(body: Buffer): string {
  const hasher = new RelaxedHash('sha256', false);
  hasher.update(body);
  return hasher.digest('base64');
}
