/** One delivery attempt: next hop, reply, duration, and the SMTP transcript. */
import { Text } from '@mantine/core';
import type { AttemptDetails as Attempt } from '../../../src/operations/messages/schemas.ts';
import { formatDuration } from '../parts/time';

export function AttemptDetails({ attempt }: { readonly attempt: Attempt }) {
  const { nextHop, stage, code, enhancedCode, reason, durationMs, transcript, outcome } = attempt;
  const facts: readonly (readonly [string, string | null])[] = [
    ['outcome', outcome],
    ['reason', reason],
    // The capture transport has no next hop.
    ['next hop', nextHop ?? (outcome === 'delivered' ? null : 'no connection')],
    ['stage', stage],
    ['reply code', [code, enhancedCode].filter((part) => part !== null).join(' ') || 'no reply'],
    ['duration', formatDuration(durationMs)],
  ];
  const lines = transcript.map((line, at) => ({ line, at }));
  return (
    <>
      <dl className="facts">
        {facts.map(([name, value]) =>
          value === null ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      {transcript.length === 0 ? null : (
        <details className="transcript-box">
          <summary>
            <Text span size="sm">
              SMTP transcript, {transcript.length} {transcript.length === 1 ? 'line' : 'lines'}
            </Text>
          </summary>
          <pre className="source transcript">
            {lines.map(({ line, at }) => (
              <span key={at} className={parseLineSender(line)}>
                {line}
                {'\n'}
              </span>
            ))}
          </pre>
        </details>
      )}
    </>
  );
}

/** Returns the kind of a line. A line without `C:` or `S:` is a remark, such as the start of TLS. */
function parseLineSender(line: string): 'client' | 'server' | 'secured' | 'remark' {
  if (line.startsWith('C:')) return 'client';
  if (line.startsWith('S:')) return 'server';
  return line.includes(', TLSv') ? 'secured' : 'remark';
}
