/** Shows that the checks are running, and the elapsed time. */
import { Group, Loader, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { formatDuration } from '../parts/time';

export function RunningChecks({ startedAt }: { readonly startedAt: number }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - startedAt) / 1_000));
  return (
    <Group gap="sm" mb="md">
      <Loader size="sm" aria-hidden />
      <Text>
        The checks run and take up to two minutes.{' '}
        <Text span inherit c="dimmed" aria-hidden>
          {formatDuration(seconds * 1_000)}
        </Text>
      </Text>
    </Group>
  );
}
