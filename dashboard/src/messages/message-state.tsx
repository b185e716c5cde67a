/** The state of a message in a list. A queued message whose last attempt was deferred has the label `deferred`. */
import { IconClock, IconRefresh } from '@tabler/icons-react';
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
  if (message.deferred)
    return (
      <span className="badge tone-deferred" title="queued; the last attempt was deferred">
        <IconClock size={14} stroke={2} aria-hidden />
        <span className="badge-word">deferred</span>
      </span>
    );
  return <StateBadge state={message.state} />;
}
