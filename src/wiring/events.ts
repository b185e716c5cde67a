/** The event of what fails. */
import type { PublishOf } from '../model/events.ts';

/** What parts call when something fails that they go on without. */
export function faults(
  publish: PublishOf<'node.fault'>,
  clock: { now(): number },
): (what: string, error: unknown) => void {
  return (what, error) => publish({ type: 'node.fault', at: clock.now(), what, error });
}
