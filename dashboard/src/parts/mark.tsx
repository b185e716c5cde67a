/** A word for a state on a colour of its own, with 4.5:1 in light and dark. */
import { Badge } from '@mantine/core';

export type Tone = 'good' | 'bad' | 'waiting' | 'quiet' | 'news';

const COLOURS: Readonly<Record<Tone, string>> = {
  good: '#1e6b37',
  bad: '#a3271c',
  waiting: '#8a4b08',
  quiet: '#5c636a',
  news: '#1c5fa8',
};

export function Mark({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <Badge
      color={COLOURS[tone]}
      variant="filled"
      tt="none"
      radius="sm"
      style={{ flex: 'none', minWidth: 'max-content' }}
    >
      {children}
    </Badge>
  );
}
