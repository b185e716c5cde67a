/** The event of what fails. */
import type { PublishOf } from '../model/events.ts';

/** What parts call when something fails that they go on without. */
export function createFailureReporter(
  publish: PublishOf<'node.operation_failed'>,
  clock: { now(): number },
): (operation: string, error: unknown) => void {
  return (operation, error) => publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
}
