/** One attempt: where it went, what was answered, how long it took, and the conversation for who wants to read it. */
import { Text } from '@mantine/core';
import type { ShownAttempt } from '../../../src/operations/messages/schemas.ts';
import { duration } from '../parts/when';

export function Attempt({ attempt }: { readonly attempt: ShownAttempt }) {
  const { remote, stage, code, enhanced, reason, tookMs, conversation, outcome } = attempt;
  const facts: readonly (readonly [string, string | null])[] = [
    ['outcome', outcome],
    ['reason', reason],
    // The local inbox has no address.
    ['next hop', remote ?? (outcome === 'delivered' ? null : 'none was reached')],
    ['at', stage],
    ['reply code', [code, enhanced].filter((part) => part !== null).join(' ') || 'no reply'],
    ['took', duration(tookMs)],
  ];
  const lines = conversation.map((line, at) => ({ line, at }));
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
      {conversation.length === 0 ? null : (
        <details>
          <summary>
            <Text span size="sm">
              Conversation, {conversation.length} {conversation.length === 1 ? 'line' : 'lines'}
            </Text>
          </summary>
          <pre className="source conversation">
            {lines.map(({ line, at }) => (
              <span key={at} className={speaker(line)}>
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

/** Lines that neither side has spoken are remarks. */
function speaker(line: string): 'client' | 'server' | 'remark' {
  return line.startsWith('C:') ? 'client' : line.startsWith('S:') ? 'server' : 'remark';
}
