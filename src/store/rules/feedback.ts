/** How reports become changes, the same on every store. Pure. */
import type { Notice } from '../../model/notice.ts';
import type { Attempt } from '../../model/outcome.ts';

/** The provider's own id that an attempt was answered with, or null. */
export function referenceOf(attempt: Attempt | null): string | null {
  return attempt?.outcome.kind === 'delivered' ? (attempt.outcome.reference ?? null) : null;
}

/** Why a report that names no mail request is kept: what was not understood, or that it was understood and names none. */
export function reasonWithoutMail(notices: readonly Notice[]): string {
  const unknown = notices.find((notice) => notice.kind === 'unknown');
  return unknown?.reason ?? 'it names no mail request of this installation';
}

/**
 * The digest of a report that is kept because it came too early: another one than its own, so that the same report is
 * applied when it comes once more.
 */
export function earlyDigest(digest: string): string {
  return `${digest}:early`;
}
