/** The state of a message as a badge, readable in light and dark mode. */
import { Badge } from '@mantine/core';
import type { State } from '../../../src/model/message.ts';

const COLORS: Readonly<Record<State, string>> = {
  queued: '#1c5fa8',
  sending: '#4b3fa7',
  delivered: '#1e6b37',
  bounced: '#a3271c',
  complained: '#8b1d5c',
  suppressed: '#5c636a',
  expired: '#8a4b08',
  cancelled: '#5c636a',
  uncertain: '#7a5b00',
};

export function StateBadge({ state }: { readonly state: State }) {
  return (
    <Badge color={COLORS[state]} variant="filled" tt="none" radius="sm">
      {state}
    </Badge>
  );
}
