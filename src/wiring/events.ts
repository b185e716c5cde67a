/** Publishes the failures of background operations as events. */
import type { PublishOf } from '../model/events.ts';

/** Creates the function that a component calls if an operation fails but the component continues. */
export function createFailureReporter(
  publish: PublishOf<'node.operation_failed'>,
  clock: { now(): number },
): (operation: string, error: unknown) => void {
  return (operation, error) => publish({ type: 'node.operation_failed', at: clock.now(), operation, error });
}
