/** The state of a message in a list, or `changed` if the message no longer matches the search. */
import { StateBadge } from '../parts/state-badge';
import { ChangedBadge } from '../parts/status-badge';
import type { ShownMessage } from './use-search';

export function MessageState({ message }: { readonly message: ShownMessage }) {
  if (message.isOutdated) return <ChangedBadge title="The message no longer matches the search" />;
  return <StateBadge state={message.state} deferred={message.deferred} />;
}
