/**
 * The part of the package standardwebhooks that the tests use. A checkout whose installed packages are older than the lockfile
 * passes the type check with it.
 */
declare module 'standardwebhooks' {
  export class WebhookVerificationError extends Error {}
  export class Webhook {
    constructor(secret: string | Uint8Array);
    sign(msgId: string, timestamp: Date, payload: string | Buffer): string;
    verify(payload: string | Buffer, headers: Record<string, string>): unknown;
  }
}
