/** The state of a message in a list, or `changed` if the message no longer matches the search. */
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import { StateBadge } from '../parts/state-badge';
import { ChangedBadge } from '../parts/status-badge';
import type { ShownMessage } from './use-search';

/** Returns true for a queued message whose last attempt was deferred. */
export function isDeferred({ state, attempts }: Pick<MessageDetails, 'state' | 'attempts'>): boolean {
  return state === 'queued' && attempts.at(-1)?.outcome === 'deferred';
}

export function MessageState({ message }: { readonly message: ShownMessage }) {
  if (message.isOutdated) return <ChangedBadge title="The message no longer matches the search" />;
  return <StateBadge state={message.state} isDeferred={message.deferred} isHeld={message.held} />;
}
