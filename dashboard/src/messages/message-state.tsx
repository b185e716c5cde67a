/** The state of a message in a list, or `changed` if the message no longer matches the search. */
import { IconRefresh } from '@tabler/icons-react';
import { StateBadge } from '../parts/state-badge';
import type { ShownMessage } from './use-search';

export function MessageState({ message }: { readonly message: ShownMessage }) {
  if (message.isOutdated)
    return (
      <span className="badge tone-neutral" title="The message no longer matches the search">
        <IconRefresh size={14} stroke={2} aria-hidden />
        <span className="badge-word">changed</span>
      </span>
    );
  return <StateBadge state={message.state} deferred={message.deferred} />;
}
