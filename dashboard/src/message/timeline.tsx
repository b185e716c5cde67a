/** Everything that happened to it, in order: accepted, each attempt, what came back, what operators did. */
import { Anchor, Group, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { MessageDetails, ShownAttempt, ShownEvent } from '../../../src/operations/messages/schemas.ts';
import { exact, When } from '../parts/when';
import { Attempt } from './attempt';
import { addressOnList, nameOfList } from './lists';

export function Timeline({ message }: { readonly message: MessageDetails }) {
  // Events are only ever added behind: each keeps its place.
  const events = message.events.map((event, at) => ({ event, at }));
  return (
    <section aria-labelledby="timeline">
      <Title order={2} size="h4" id="timeline" mb="xs">
        Timeline
      </Title>
      <ol className="plain timeline">
        {events.map(({ event, at }) => (
          <li key={at}>
            <Event event={event} message={message} />
          </li>
        ))}
        {message.suppressions
          .filter(({ source }) => source === message.id)
          .map(({ list, at }) => (
            <li key={list}>
              <Head type="recipient suppressed" at={at} by={null} />
              <Text size="sm" className="wrap">
                because of this, {message.to} was put on{' '}
                <Anchor component={Link} href={addressOnList(list, message.to)} inherit>
                  {nameOfList(list)}
                </Anchor>
              </Text>
            </li>
          ))}
      </ol>
    </section>
  );
}

function Event({ event, message }: { readonly event: ShownEvent; readonly message: MessageDetails }) {
  const attempt: ShownAttempt | undefined = event.attempt === null ? undefined : message.attempts[event.attempt];
  return (
    <>
      <Head type={event.type} at={event.at} by={event.type === 'accepted' ? null : actor(event.by)} />
      {event.type === 'accepted' ? <Accepted message={message} /> : null}
      {event.detail === null ? null : (
        <Text size="sm" className="wrap">
          {event.detail}
        </Text>
      )}
      {attempt === undefined ? null : <Attempt attempt={attempt} />}
    </>
  );
}

function Head({ type, at, by }: { readonly type: string; readonly at: string; readonly by: string | null }) {
  return (
    <Group gap="xs" align="baseline">
      <Text fw={600}>{type}</Text>
      <Text size="sm">{exact(at)}</Text>
      <Text size="sm" c="dimmed">
        <When at={at} />
        {by === null ? '' : `, by ${by}`}
      </Text>
    </Group>
  );
}

function Accepted({ message: { account, key, keyName } }: { readonly message: MessageDetails }) {
  return (
    <Text size="sm" className="wrap">
      with key {keyName === null ? key : `${keyName} (${key})`}
      {account === null ? (
        ' of an account that is gone'
      ) : (
        <>
          {' '}
          of account{' '}
          <Anchor component={Link} href={`/accounts/${encodeURIComponent(account)}`} inherit>
            {account}
          </Anchor>
        </>
      )}
    </Text>
  );
}

/** Who brought it about, in words: a node, an operator, the simulator, what came back and by which way. */
function actor(by: string): string {
  if (by === 'operator') return 'an operator';
  if (by === 'simulator') return 'the mailbox simulator';
  // No node: it looked the recipient up in the transaction that accepts or takes the mail.
  if (by === 'store') return 'the suppression list';
  if (by.startsWith('feedback:')) return `a notice that came back over ${by.slice('feedback:'.length)}`;
  return `node ${by}`;
}
