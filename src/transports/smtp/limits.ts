/**
 * Every wait and bound of the SMTP client in one table. RFC 5321 section 4.5.3.2 asks for minutes at each step so
 * that no slow server is given up too early; a queue that tries again makes shorter ones safe, except after the
 * final dot, where giving up makes duplicates: there the wait is the longest.
 */

export interface SmtpLimits {
  /** TCP, name resolution included. */
  readonly connectMs: number;
  readonly greetingMs: number;
  readonly tlsMs: number;
  /** EHLO, AUTH, MAIL, RCPT, DATA: each answer. */
  readonly commandMs: number;
  /** From the final dot to its answer. */
  readonly contentMs: number;
  /** From the begin of an attempt to its final dot, all steps and connections together. */
  readonly attemptMs: number;
  readonly quitMs: number;
  /** How long an unused connection is kept. */
  readonly idleMs: number;
  /** Messages after which a connection ends with QUIT, so that a relay can balance its load. */
  readonly messagesPerConnection: number;
  /** How long `offered` stays in clear text after a TLS handshake failed. */
  readonly clearAfterTlsFailureMs: number;
}

export const SMTP_LIMITS: SmtpLimits = {
  connectMs: 30_000,
  greetingMs: 60_000,
  tlsMs: 30_000,
  commandMs: 60_000,
  contentMs: 120_000,
  attemptMs: 240_000,
  quitMs: 2_000,
  idleMs: 30_000,
  messagesPerConnection: 500,
  clearAfterTlsFailureMs: 600_000,
};
