/** A badge with one of six tones. Text and background have a contrast of 4.5:1 in light and dark mode. */
import {
  IconAlertTriangle,
  IconCheck,
  IconFlag,
  IconInfoCircle,
  IconPointFilled,
  IconRefresh,
  IconX,
  type TablerIcon,
} from '@tabler/icons-react';

export type Tone = 'success' | 'error' | 'warning' | 'complained' | 'neutral' | 'info';

export const TONE_ICONS: Readonly<Record<Tone, TablerIcon>> = {
  success: IconCheck,
  error: IconX,
  warning: IconAlertTriangle,
  complained: IconFlag,
  neutral: IconPointFilled,
  info: IconInfoCircle,
};

export function StatusBadge({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  const Icon = TONE_ICONS[tone];
  return (
    <span className={`badge tone-${tone}`}>
      <Icon size={14} stroke={2} aria-hidden />
      <span className="badge-word">{children}</span>
    </span>
  );
}

/** The badge of a row that changed and no longer matches the filter of the list. `title` states this. */
export function ChangedBadge({ title }: { readonly title: string }) {
  return (
    <span className="badge tone-neutral" title={title}>
      <IconRefresh size={14} stroke={2} aria-hidden />
      <span className="badge-word">changed</span>
    </span>
  );
}
