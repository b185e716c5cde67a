/** Times as people read them: how long ago, the exact one in UTC beside it; durations in one or two units. */
import { Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { duration, exact } from './time';

export { duration, exact } from './time';

/** `4 min ago`, or `in 20 s`; counts on while it is looked at. */
export function When({ at }: { readonly at: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5_000);
    return () => clearInterval(timer);
  }, []);
  const ago = now - Date.parse(at);
  const text = Math.abs(ago) < 1_000 ? 'just now' : ago < 0 ? `in ${duration(-ago)}` : `${duration(ago)} ago`;
  return (
    <Text component="time" dateTime={at} title={exact(at)} span inherit>
      {text}
    </Text>
  );
}
