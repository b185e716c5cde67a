/** A badge with one of five tones. Text and background have a contrast of 4.5:1 in light and dark mode. */
import { Badge } from '@mantine/core';

export type Tone = 'success' | 'error' | 'warning' | 'neutral' | 'info';

const COLORS: Readonly<Record<Tone, string>> = {
  success: '#1e6b37',
  error: '#a3271c',
  warning: '#8a4b08',
  neutral: '#5c636a',
  info: '#1c5fa8',
};

export function StatusBadge({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <Badge
      color={COLORS[tone]}
      variant="filled"
      tt="none"
      radius="sm"
      style={{ flex: 'none', minWidth: 'max-content' }}
    >
      {children}
    </Badge>
  );
}
