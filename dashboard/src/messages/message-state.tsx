/** The state of a message in a list. A queued message whose last attempt was deferred has the label `deferred`. */
import { Badge } from '@mantine/core';
import { StateBadge } from '../parts/state-badge';
import type { ShownMessage } from './use-search';

export function MessageState({ message }: { readonly message: ShownMessage }) {
  if (message.isOutdated)
    return (
      <Badge color="#5c636a" variant="filled" tt="none" radius="sm" title="The message no longer matches the search">
        changed
      </Badge>
    );
  if (message.deferred)
    return (
      <Badge color="#8a4b08" variant="filled" tt="none" radius="sm" title="queued; the last attempt was deferred">
        deferred
      </Badge>
    );
  return <StateBadge state={message.state} />;
}
