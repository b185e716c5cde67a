/** What was found: a table, and on a narrow screen one card for each. */
import { Anchor, Badge, Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { Link } from 'wouter';
import { StateBadge } from '../parts/state-badge';
import { When } from '../parts/when';
import type { FoundMessage } from './use-search';

const NARROW = '(max-width: 61.99em)';

export function Results({ messages }: { readonly messages: readonly FoundMessage[] }) {
  const narrow = useMediaQuery(NARROW, undefined, { getInitialValueInEffect: false });
  return narrow === true ? <Cards messages={messages} /> : <Rows messages={messages} />;
}

function Rows({ messages }: { readonly messages: readonly FoundMessage[] }) {
  // What it waits for is worth more room than who sent it.
  const why = messages.some(({ waitsFor }) => waitsFor !== undefined);
  return (
    <Table highlightOnHover layout="fixed" verticalSpacing={6}>
      <VisuallyHidden component="caption">Mail requests, the newest first</VisuallyHidden>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col" w="7.5rem">
            State
          </Table.Th>
          <Table.Th scope="col" w="8.5rem">
            Accepted
          </Table.Th>
          <Table.Th scope="col">To</Table.Th>
          {why ? null : <Table.Th scope="col">From</Table.Th>}
          <Table.Th scope="col" w={why ? '20%' : '28%'}>
            Subject
          </Table.Th>
          {why ? (
            <Table.Th scope="col" w="28%">
              Waits for
            </Table.Th>
          ) : null}
          <Table.Th scope="col" w="7rem">
            Account
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {messages.map((message) => (
          <Table.Tr key={message.id}>
            <Table.Td>
              <State message={message} />
            </Table.Td>
            <Table.Td>
              <When at={message.at} />
            </Table.Td>
            <Table.Td className="wrap">{message.to}</Table.Td>
            {why ? null : <Table.Td className="wrap">{message.from}</Table.Td>}
            <Table.Td>
              <Subject message={message} />
            </Table.Td>
            {why ? <Table.Td className="wrap">{message.waitsFor ?? '–'}</Table.Td> : null}
            <Table.Td className="wrap">{message.account ?? '–'}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Cards({ messages }: { readonly messages: readonly FoundMessage[] }) {
  return (
    <Stack component="ul" gap="xs" className="plain" aria-label="Mail requests, the newest first">
      {messages.map((message) => (
        <Paper component="li" key={message.id} withBorder p="sm">
          <Group justify="space-between" mb={4}>
            <State message={message} />
            <Text size="sm" c="dimmed">
              <When at={message.at} />
            </Text>
          </Group>
          <Subject message={message} />
          <Text size="sm" className="wrap">
            to {message.to}
          </Text>
          <Text size="sm" c="dimmed" className="wrap">
            from {message.from}
            {message.account === null ? '' : `, account ${message.account}`}
          </Text>
          {message.waitsFor === undefined || message.waitsFor === null ? null : (
            <Text size="sm" className="wrap">
              waits for {message.waitsFor}
            </Text>
          )}
        </Paper>
      ))}
    </Stack>
  );
}

function Subject({ message }: { readonly message: FoundMessage }) {
  return (
    <Anchor component={Link} href={`/messages/${message.id}`} className="wrap" lineClamp={2} inherit underline="hover">
      {message.subject.trim() === '' ? '(blank subject)' : message.subject}
    </Anchor>
  );
}

function State({ message }: { readonly message: FoundMessage }) {
  if (!message.gone) return <StateBadge state={message.state} />;
  return (
    <Badge color="#5c636a" variant="filled" tt="none" radius="sm" title="It no longer is what was searched for">
      changed since
    </Badge>
  );
}
