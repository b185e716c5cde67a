/** A time relative to now; its tooltip has the full time. */
import { Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { formatAge, formatTime } from './time';

/** Shows `4 min ago` or `in 20 s`, updated every 5 s. */
export function RelativeTime({ at }: { readonly at: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5_000);
    return () => clearInterval(timer);
  }, []);
  const ageMs = now - Date.parse(at);
  const text = Math.abs(ageMs) < 1_000 ? 'just now' : ageMs < 0 ? `in ${formatAge(-ageMs)}` : `${formatAge(ageMs)} ago`;
  return (
    <Text component="time" dateTime={at} title={formatTime(at)} span inherit>
      {text}
    </Text>
  );
}
