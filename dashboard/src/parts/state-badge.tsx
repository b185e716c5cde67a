/** The state of a message as a badge with an icon and a word, so that the meaning does not depend on color. */
import {
  IconAlertTriangle,
  IconBan,
  IconCheck,
  IconClock,
  IconDots,
  IconFlag,
  IconPlayerPause,
  IconSend,
  IconX,
  type TablerIcon,
} from '@tabler/icons-react';
import type { State } from '../../../src/model/message.ts';

/** The tone and the icon of a state. Tones are defined in styles/parts.css. */
export const STATE_STYLES: Readonly<Record<State, readonly [tone: string, Icon: TablerIcon]>> = {
  queued: ['queued', IconDots],
  sending: ['queued', IconSend],
  delivered: ['delivered', IconCheck],
  bounced: ['bounced', IconX],
  complained: ['complained', IconFlag],
  suppressed: ['neutral', IconBan],
  expired: ['deferred', IconClock],
  cancelled: ['neutral', IconX],
  uncertain: ['deferred', IconAlertTriangle],
};

/**
 * The tone and the icon of a queued message whose last attempt was deferred. The badge shows `deferred`; the state in
 * the API remains `queued`.
 */
const DEFERRED_STYLE: readonly [tone: string, Icon: TablerIcon] = ['deferred', IconClock];

/** Returns the tone and the icon of a state. `isDeferred` is true if the last attempt was deferred. */
export function findStateStyle(state: State, isDeferred: boolean): readonly [tone: string, Icon: TablerIcon] {
  return state === 'queued' && isDeferred ? DEFERRED_STYLE : STATE_STYLES[state];
}

interface StateBadgeProps {
  readonly state: State;
  /** True for a queued message whose last attempt was deferred. */
  readonly isDeferred: boolean;
  /** True for a queued message that a hold stops. */
  readonly isHeld?: boolean;
}

export function StateBadge({ state, isDeferred, isHeld = false }: StateBadgeProps) {
  if (isHeld)
    return (
      <span className="badge tone-deferred" title={`${state}; a hold stops it`}>
        <IconPlayerPause size={14} stroke={2} aria-hidden />
        <span className="badge-word">held</span>
      </span>
    );
  const [tone, Icon] = findStateStyle(state, isDeferred);
  return (
    <span
      className={`badge tone-${tone}`}
      {...(isDeferred ? { title: `${state}; the last attempt was deferred` } : {})}
    >
      <Icon size={14} stroke={2} aria-hidden />
      <span className="badge-word">{isDeferred ? 'deferred' : state}</span>
    </span>
  );
}
