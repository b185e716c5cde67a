/** Shows why an endpoint is disabled or failing, and the consequences for its deliveries. */
import { MAX_FAILING_MS } from '../../../src/model/webhook.ts';
import type { WebhookEntry, WebhookFigures } from '../../../src/operations/webhooks.ts';
import { Callout } from '../parts/callout';
import { formatCount } from '../parts/number';
import { formatTime } from '../parts/time';

interface StatusNoteProps {
  readonly webhook: WebhookEntry;
  readonly figures: WebhookFigures | undefined;
}

export function StatusNote({ webhook, figures }: StatusNoteProps) {
  const { disabledReason, disabledAt } = webhook;
  if (disabledReason === null || disabledAt === null) {
    const failingSince = figures?.failingSince ?? null;
    if (failingSince === null) return null;
    const plannedDisableAt = new Date(Date.parse(failingSince) + MAX_FAILING_MS).toISOString();
    return (
      <Callout tone="warning" title="No success since the first failure">
        Attempts have failed since {formatTime(failingSince)}. Each delivery is retried for about three days. Without a
        success the endpoint is disabled after {formatTime(plannedDisableAt)}.
      </Callout>
    );
  }
  const pendingText = figures === undefined || figures.pending === 0 ? '' : ` ${formatPending(figures.pending)}`;
  switch (disabledReason) {
    case 'operator':
      return (
        <Callout tone="neutral" title={`An operator disabled the endpoint at ${formatTime(disabledAt)}`}>
          Its events are kept for 30 days. If you enable it, they are sent at once.{pendingText}
        </Callout>
      );
    case 'gone':
      return (
        <Callout tone="error" title={`The endpoint responded with 410 at ${formatTime(disabledAt)}`}>
          The status 410 means that the endpoint no longer exists, so it was disabled. Its events are kept for 30 days.
          Correct the URL, then enable the endpoint.{pendingText}
        </Callout>
      );
    case 'failing':
      return (
        <Callout tone="error" title={`Disabled after five days without a success, at ${formatTime(disabledAt)}`}>
          Its events are kept for 30 days. Correct the receiver, then enable the endpoint; pending deliveries are sent
          at once. Replay the failed deliveries.{pendingText}
        </Callout>
      );
  }
}

function formatPending(pending: number): string {
  return `${formatCount(pending, 'delivery waits', 'deliveries wait')}.`;
}
