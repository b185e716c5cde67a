/** Parses the member `returnPath` of `setDomain`. */
import { describeReturnPath, parseReturnPath } from '../domains/return-path.ts';
import { getSendingSetup } from '../domains/setup.ts';
import type { OperationContext } from './context.ts';
import { createConflict, createInvalid, ok, type Result } from './errors.ts';

/** The value of `returnPath` that removes a return path. */
const NO_RETURN_PATH = 'none';

/**
 * Returns the return path, or null for `none`. Fails if no listener could receive the bounces. Adds a warning if the
 * return path has no effect, or if only another node can receive the bounces.
 */
export function parseNewReturnPath(
  domain: string,
  text: string,
  { settings, warn }: OperationContext,
): Result<string | null> {
  if (text === NO_RETURN_PATH) return ok(null);
  const parsed = parseReturnPath(domain, text);
  if (!parsed.ok) return createInvalid('returnPath', parsed.fault);
  const { name } = parsed;
  const setup = getSendingSetup(settings);
  if (setup.replacedBy !== null) {
    warn('return-path-replaced', describeReturnPath({ name, isVerified: false }, setup).detail);
    return ok(name);
  }
  const remedy = 'set POSTRIDER_RETURN_PATH_DOMAIN and POSTRIDER_FEEDBACK_LISTEN first (docs/feedback.md)';
  if (settings.returnPathDomain === null)
    return createConflict(
      'returnPath',
      `the feedback listener has no public name, so bounces to ${name} would be lost; ${remedy}`,
    );
  if (settings.feedbackListen !== null) return ok(name);
  // The embedded store has one node, so no other node can have the listener.
  if (settings.database.kind === 'sqlite')
    return createConflict(
      'returnPath',
      `POSTRIDER_FEEDBACK_LISTEN is not set, so bounces to ${name} would be lost; ${remedy}`,
    );
  warn(
    'feedback-listener',
    `POSTRIDER_FEEDBACK_LISTEN is not set on this node; bounces to ${name} are lost unless another node sets it`,
  );
  return ok(name);
}
