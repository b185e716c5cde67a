/** The messages found: a table, or cards on a narrow screen. */
import { Anchor, Badge, Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { Link } from 'wouter';
import { RelativeTime } from '../parts/relative-time';
import { StateBadge } from '../parts/state-badge';
import type { ShownMessage } from './use-search';

const NARROW_SCREEN = '(max-width: 61.99em)';

export function Results({ messages }: { readonly messages: readonly ShownMessage[] }) {
  const isNarrow = useMediaQuery(NARROW_SCREEN, undefined, { getInitialValueInEffect: false });
  return isNarrow === true ? <Cards messages={messages} /> : <Rows messages={messages} />;
}

function Rows({ messages }: { readonly messages: readonly ShownMessage[] }) {
  // The column of the wait reason replaces the column of the sender.
  const showWaitReason = messages.some(({ waitReason }) => waitReason !== undefined);
  return (
    <Table highlightOnHover layout="fixed" verticalSpacing={6} horizontalSpacing={6}>
      <VisuallyHidden component="caption">Messages, newest first</VisuallyHidden>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col" w="7rem">
            State
          </Table.Th>
          <Table.Th scope="col" w="7.5rem">
            Accepted
          </Table.Th>
          <Table.Th scope="col" w={showWaitReason ? '22%' : '27%'}>
            To
          </Table.Th>
          {showWaitReason ? null : (
            <Table.Th scope="col" w="20%">
              From
            </Table.Th>
          )}
          <Table.Th scope="col" {...(showWaitReason ? { w: '16%' } : {})}>
            Subject
          </Table.Th>
          {showWaitReason ? <Table.Th scope="col">Waits for</Table.Th> : null}
          <Table.Th scope="col" w="6rem">
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
            <Table.Td style={{ whiteSpace: 'nowrap' }}>
              <RelativeTime at={message.at} />
            </Table.Td>
            <OneLine text={message.to} />
            {showWaitReason ? null : <OneLine text={message.from} />}
            <Table.Td>
              <Subject message={message} lines={showWaitReason ? 2 : 1} />
            </Table.Td>
            {showWaitReason ? (
              <Table.Td>
                <Text fz={13} className="wrap" lineClamp={2} title={message.waitReason ?? ''}>
                  {message.waitReason ?? '–'}
                </Text>
              </Table.Td>
            ) : null}
            <OneLine text={message.account ?? '–'} />
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** Shows truncated text, so that each row has the height of one line. The tooltip has the full text. */
function OneLine({ text }: { readonly text: string }) {
  return (
    <Table.Td>
      <Text inherit truncate title={text}>
        {text}
      </Text>
    </Table.Td>
  );
}

function Cards({ messages }: { readonly messages: readonly ShownMessage[] }) {
  return (
    <Stack component="ul" gap="xs" className="plain" aria-label="Messages, newest first">
      {messages.map((message) => (
        <Paper component="li" key={message.id} withBorder p="sm">
          <Group justify="space-between" mb={4}>
            <State message={message} />
            <Text size="sm" c="dimmed">
              <RelativeTime at={message.at} />
            </Text>
          </Group>
          <Subject message={message} lines={2} />
          <Text size="sm" className="wrap">
            to {message.to}
          </Text>
          <Text size="sm" c="dimmed" className="wrap">
            from {message.from}
            {message.account === null ? '' : `, account ${message.account}`}
          </Text>
          {message.waitReason === undefined || message.waitReason === null ? null : (
            <Text size="sm" className="wrap">
              Waits for {message.waitReason}
            </Text>
          )}
        </Paper>
      ))}
    </Stack>
  );
}

function Subject({ message, lines }: { readonly message: ShownMessage; readonly lines: number }) {
  const { id, subject } = message;
  return (
    <Anchor
      component={Link}
      href={`/messages/${id}`}
      className="wrap"
      lineClamp={lines}
      title={subject}
      inherit
      underline="hover"
    >
      {subject.trim() === '' ? '(blank subject)' : subject}
    </Anchor>
  );
}

function State({ message }: { readonly message: ShownMessage }) {
  if (!message.isOutdated) return <StateBadge state={message.state} />;
  return (
    <Badge color="#5c636a" variant="filled" tt="none" radius="sm" title="The message no longer matches the search">
      changed
    </Badge>
  );
}
